/** Pictures of a report, for people: `npm run shots -- REPORT FOLDER`. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open } from './browser.mjs';

const [report, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const colorScheme of ['light', 'dark']) {
  const { page, complaints } = await open(browser, report, { colorScheme });
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${colorScheme}.png`), fullPage: true });
  for (const complaint of complaints) console.error(complaint);
  await page.close();
}
await browser.close();
