/** The picture of the README: a lifecycle from its legend to its table. `npm run picture -- REPORT FILE.png` */

import { launch, open } from './browser.mjs';

const WIDTH = 1280;
const PIXELS = 1400;

const [report, file] = process.argv.slice(2);
const browser = await launch();
const { page } = await open(browser, report, {
  colorScheme: 'light',
  viewport: { width: WIDTH, height: PIXELS },
  deviceScaleFactor: PIXELS / WIDTH,
});
const life = page.locator('section.life').first();
await life.scrollIntoViewIfNeeded();
await page.evaluate(() => scrollTo(0, 0));
await page.waitForTimeout(400);
const top = await life.locator('.legend[aria-label="Phases"]').boundingBox();
const last = await life.locator('tbody tr').last().boundingBox();
const y = top.y - 10;
await page.screenshot({ path: file, fullPage: true, clip: { x: 0, y, width: WIDTH, height: last.y + last.height + 2 - y } });
await browser.close();
