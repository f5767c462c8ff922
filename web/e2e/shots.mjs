/** Pictures of a report, screen by screen, for people: `npm run shots -- REPORT FOLDER`. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, open } from './browser.mjs';

const SCREEN = { width: 1360, height: 1100 };

const height = (page) => page.evaluate(() => document.documentElement.scrollHeight);

const [report, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const colorScheme of ['light', 'dark']) {
  const { page, complaints } = await open(browser, report, { colorScheme, viewport: SCREEN });
  // Charts are made when they come near the screen.
  for (let y = 0; y < (await height(page)); y += SCREEN.height / 2) {
    await page.mouse.wheel(0, SCREEN.height / 2);
    await page.waitForTimeout(50);
  }
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(300);
  const end = await height(page);
  for (let y = 0, i = 0; y < end; y += SCREEN.height, i++) {
    const clip = { x: 0, y, width: SCREEN.width, height: Math.min(SCREEN.height, end - y) };
    await page.screenshot({ path: join(folder, `${colorScheme}-${i}.png`), clip, fullPage: true });
  }
  for (const complaint of complaints) console.error(complaint);
  await page.close();
}
await browser.close();
