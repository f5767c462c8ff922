/**
 * Opens the report of a real run from disk and sorts every lifecycle: no request, no
 * error, no empty chart. `npm run opens -- REPORT.html`
 */

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { launch, open } from './browser.mjs';

const file = process.argv[2];
assert(file, 'which report? npm run opens -- REPORT.html');

const browser = await launch();
try {
  const { page, complaints } = await open(browser, resolve(file));
  const lives = page.locator('section.life');
  const count = await lives.count();
  assert(count > 0, 'the report shows no lifecycle');
  for (let n = 0; n < count; n++) {
    const select = lives.nth(n).getByLabel('Sort by');
    for (const value of await select.locator('option').evaluateAll((all) => all.map((one) => one.value))) {
      await select.selectOption(value);
    }
    const colours = await lives.nth(n).locator('canvas').first().evaluate((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
      return seen.size;
    });
    assert(colours > 3, `lifecycle ${n} is drawn in ${colours} colours`);
  }
  assert((await page.locator('.verdict tbody tr').count()) > 0, 'the report shows no verdict');
  assert.deepEqual(complaints, []);
  console.log(`ok    ${file} opens from disk, ${count} lifecycles`);
} finally {
  await browser.close();
}
