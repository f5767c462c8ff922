/**
 * How long a report takes until its first lifecycle chart is drawn: medians of 5 loads.
 * `npm run paint -- REPORT.html`
 *
 * The first three lines are wall time: measure on a machine with nothing else to do. The
 * last is processor time of the page's thread, which a busy machine changes little.
 */

import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './browser.mjs';

const LOADS = 5;
/** Work of the page's own code, as the browser's timeline names it. */
const SCRIPT = new Set(['EvaluateScript', 'FunctionCall', 'RunMicrotasks', 'v8.run', 'v8.compile', 'v8.compileModule', 'v8.evaluateModule']);

const file = process.argv[2];
assert(file, 'which report? npm run paint -- REPORT.html');

const browser = await launch();
const loads = [];
try {
  for (let load = 0; load < LOADS; load++) loads.push(await measure());
} finally {
  await browser.close();
}
for (const what of Object.keys(loads[0])) {
  const sorted = loads.map((load) => load[what]).sort((a, b) => a - b);
  const [least, median, most] = [sorted[0], sorted[LOADS >> 1], sorted[LOADS - 1]].map((ms) => ms.toFixed(1));
  console.log(`${what.padEnd(48)} ${median.padStart(7)} ms   (${least} to ${most})`);
}

async function measure() {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
  await browser.startTracing(page, { categories: ['devtools.timeline', 'blink.user_timing', 'v8', 'toplevel'] });
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForSelector('main[aria-busy=false]');
  await page.waitForFunction(() => performance.getEntriesByName('lifecycle').length > 0);
  const trace = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
  const times = await page.evaluate(() => ({
    start: performance.getEntriesByName('start')[0].startTime,
    drawn: performance.getEntriesByName('lifecycle')[0].startTime,
    first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  }));
  await page.close();

  const mark = trace.find((event) => event.name === 'lifecycle' && event.cat.includes('user_timing'));
  assert(mark, 'the trace has no mark of the first lifecycle chart');
  const own = trace.filter((event) => event.ph === 'X' && event.pid === mark.pid && event.tid === mark.tid && event.ts < mark.ts);
  return {
    'from opening to the first content': times.first,
    'from opening to the lifecycle chart': times.drawn,
    'from the first script line to the chart': times.drawn - times.start,
    'JavaScript until the chart, compiling included': processorTime(own.filter(({ name }) => SCRIPT.has(name)), mark.tts),
  };
}

/** Milliseconds of processor time in the events up to `end`; they nest, so each moment counts once. */
function processorTime(events, end) {
  let until = 0;
  let sum = 0;
  for (const { tts, tdur = 0 } of events.sort((a, b) => a.tts - b.tts)) {
    const from = Math.max(tts, until);
    const to = Math.min(tts + tdur, end);
    if (to > from) sum += to - from;
    until = Math.max(until, to);
  }
  return sum / 1000;
}
