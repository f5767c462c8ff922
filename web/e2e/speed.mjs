/**
 * How long a report takes to open and to be sorted, aligned and zoomed, until the chart is drawn: medians, and
 * least to most. `npm run speed -- REPORT.html [TIMES]`
 *
 * Wall time: measure on a machine with nothing else to do. A made-up run of a million entities:
 * `cargo run --release -p lab-report --example sample -- FOLDER 1000000`.
 */

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './browser.mjs';

const file = process.argv[2];
assert(file, 'which report? npm run speed -- REPORT.html [TIMES]');
const times = Number(process.argv[3] ?? 5);

const figures = new Map();
function note(what, ms) {
  if (!figures.has(what)) figures.set(what, []);
  figures.get(what).push(ms);
}

const browser = await launch();
try {
  for (let n = 0; n < times; n++) await once();
} finally {
  await browser.close();
}
console.log(`${file}: ${statSync(file).size} bytes`);
for (const [what, all] of figures) {
  const sorted = all.sort((a, b) => a - b);
  const [least, median, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((ms) => ms.toFixed(0));
  console.log(`${what.padEnd(52)} ${median.padStart(6)} ms   (${least} to ${most})`);
}

async function once() {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
  page.setDefaultTimeout(300_000);
  await page.goto(pathToFileURL(resolve(file)).href, { timeout: 300_000 });
  await page.waitForFunction(() => performance.getEntriesByName('lifecycle').length > 0);
  note('open: until the first chart', await page.evaluate(() => performance.getEntriesByName('lifecycle')[0].startTime));
  await page.waitForSelector('section.life table tbody tr');
  note('open: until the numbers below it', await page.evaluate(() => performance.now()));
  await settled(page);

  const select = (label, value) => ({ label, value });
  for (const [what, { label, value }] of [
    ['sort by end', select('Sort by', 'end')],
    ['sort by total time', select('Sort by', 'total')],
    ['sort by a phase', select('Sort by', '7')],
    ['align on the own start', select('Align on', 'start')],
    ['align on a point', select('Align on', '7')],
    ['align on the time of the run', select('Align on', 'run')],
    ['sort by group', select('Sort by', 'group')],
    ['sort by start', select('Sort by', 'start')],
  ]) {
    const option = page.locator('section.life').first().locator('label', { hasText: label }).locator('select');
    note(what, await drawn(option, (select, value) => {
      select.value = value;
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }, value));
    await settled(page);
  }
  const plot = page.locator('section.life [role=application]').first();
  for (const [what, key] of [
    ['zoom into the middle half', '+'],
    ['zoom in again', '+'],
    ['show everything', 'Escape'],
  ]) {
    note(what, await drawn(plot, (plot, key) => plot.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })), key));
    await settled(page);
  }
  await page.close();
}

/** From something that the reader does to the next frame in which the chart is another one. */
function drawn(locator, act, value) {
  return locator.evaluate(
    async (element, [act, value]) => {
      const marks = () => performance.getEntriesByName('lifecycle').length;
      const before = marks();
      const began = performance.now();
      new Function(`return ${act}`)()(element, value);
      while (marks() === before) await new Promise((done) => setTimeout(done));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - began;
    },
    [act.toString(), value],
  );
}

/** Waits until what is made later is made. */
async function settled(page) {
  await page.waitForTimeout(200);
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
  await page.waitForTimeout(400);
}
