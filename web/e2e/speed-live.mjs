/**
 * How a run of many entities is watched: updates a second while rows change, and what one of them costs `headroom`
 * and the page. `npm run speed:live -- HEADROOM [ENTITIES] [CHANGES_A_SECOND] [SECONDS]`
 *
 * Costs are processor time, so that they mean the same on a busy machine; updates a second are not. The system
 * writes 16 lines for each entity, 1.1 GB for a million.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';

const headroom = resolve(process.argv[2] ?? '../target/release/headroom');
const [entities, aSecond, seconds] = [3, 4, 5].map((at, i) => Number(process.argv[at] ?? [1_000_000, 4000, 20][i]));
/** Of a clock of the kernel's accounts. */
const TICK_MS = 10;

const folder = mkdtempSync(join(tmpdir(), 'headroom-crowd-'));
const crowd = fileURLToPath(new URL('crowd.mjs', import.meta.url));
const points = Array.from({ length: 16 }, (_, point) => `["${String.fromCharCode(97 + point)}", "p.${String.fromCharCode(97 + point)}"]`);
writeFileSync(
  join(folder, 'crowd.toml'),
  `lab = 1
name = "crowd"
about = "a run of many entities, to measure how it is watched"
seed = 1

[[system]]
name = "crowd"
run = "${process.execPath} ${crowd} ${entities} ${aSecond} ${folder}"
ready = "log p.a"
log = "logfmt"

[[lifecycle]]
name = "task"
key = ["id"]
group = ["cell"]
points = [${points.join(', ')}]

[[step]]
name = "watched"
run = "until [ -e ${folder}/end ]; do sleep 0.1; done"

[[expect]]
that = "task.complete >= 0%"
`,
);

const run = spawn(headroom, ['run', join(folder, 'crowd.toml'), '--out', join(folder, 'runs'), '--page'], { stdio: ['ignore', 'ignore', 'pipe'] });
const ended = new Promise((done) => run.once('exit', done));
const told = [];
const address = new Promise((found) => {
  createInterface({ input: run.stderr }).on('line', (line) => {
    told.push(line);
    const [url] = line.match(/http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/) ?? [];
    if (url) found(url);
  });
});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Processor time that the threads of `headroom` of this name have used, in milliseconds. */
function used(name) {
  let ticks = 0;
  for (const task of readdirSync(`/proc/${run.pid}/task`)) {
    const stat = readFileSync(`/proc/${run.pid}/task/${task}/stat`, 'utf8');
    if (name && !stat.includes(`(${name})`)) continue;
    const [, , , , , , , , , , , user, system] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(user) + Number(system);
  }
  return ticks * TICK_MS;
}

const browser = await launch();
try {
  const url = await Promise.race([address, ended]);
  assert.equal(typeof url, 'string', `${headroom} run ended with ${url}: ${told.join('\n')}`);
  while (!existsSync(join(folder, 'filled'))) await pause(100);

  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
  page.setDefaultTimeout(600_000);
  const opened = performance.now();
  await page.goto(url);
  await page.waitForFunction(() => performance.getEntriesByName('lifecycle').length > 0);
  console.log(`opens, until the first chart: ${(performance.now() - opened).toFixed(0)} ms`);
  // Until all that was written before has been read, and the numbers were counted once.
  await page.waitForFunction(
    (all) => document.querySelector('section.life .head p')?.innerText.replaceAll(/\D*entit.*/gs, '').replaceAll(/\D/g, '') === String(all),
    entities,
  );
  await page.waitForSelector('section.life table tbody tr');
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const pageUsed = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
  };
  await page.evaluate(() => {
    window.updates = [];
    new PerformanceObserver((list) => {
      for (const { duration, detail } of list.getEntries()) window.updates.push({ duration, rows: detail[0] });
    }).observe({ type: 'measure' });
  });
  writeFileSync(join(folder, 'go'), '');
  await pause(3000);
  const sort = page.locator('section.life select').first();
  for (const [what, act] of [
    ['sorted by start, changes in the order of start', async () => {}],
    ['sorted by start, changes from all over', async () => writeFileSync(join(folder, 'go'), 'all over')],
    ['sorted by total time, changes from all over', () => sort.selectOption('total')],
  ]) {
    await act();
    await pause(1000);
    await measured(what);
  }

  async function measured(what) {
    await page.evaluate(() => void (window.updates.length = 0));
    const threads = ['snapshots', 'page'];
    const before = threads.map(used);
    const [all, own, began] = [used(), await pageUsed(), performance.now()];
    await pause(1000 * seconds);
    const updates = await page.evaluate(() => window.updates);
    const passed = (performance.now() - began) / 1000;
    const n = updates.length;
    assert.ok(n > 0, 'nothing came');
    const server = threads.map((name, i) => used(name) - before[i]);
    const middle = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
    const rows = updates.reduce((sum, update) => sum + update.rows, 0);
    console.log(
      `${what}: ${(n / passed).toFixed(1)} updates a second of ${(rows / n).toFixed(0)} rows each\n` +
        `  headroom: ${(server.reduce((a, b) => a + b) / n).toFixed(0)} ms of processor time an update to make and send it` +
        ` (${threads.map((name, i) => `${name} ${(server[i] / n).toFixed(0)}`).join(', ')}), ${((used() - all) / n).toFixed(0)} ms with the reading of logs and all else\n` +
        `  page: ${middle(updates.map(({ duration }) => duration)).toFixed(0)} ms an update until it is drawn (median, wall time;` +
        ` least ${Math.min(...updates.map(({ duration }) => duration)).toFixed(0)}), ${((await pageUsed()) / n - own / n).toFixed(0)} ms of processor time with all that is counted meanwhile`,
    );
  }
} finally {
  await browser.close();
  writeFileSync(join(folder, 'end'), '');
  const timer = setTimeout(() => run.kill('SIGTERM'), 120_000);
  await ended;
  clearTimeout(timer);
  rmSync(folder, { recursive: true });
}
