/**
 * Watches a real run in a real browser: what is shown grows, stays as the reader has it, and
 * ends as the report.
 *
 * `npm run e2e:live -- HEADROOM`, where HEADROOM is the binary.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { launch, open, openLive } from './browser.mjs';

const headroom = process.argv[2] ?? '../target/release/headroom';
const folder = mkdtempSync(join(tmpdir(), 'headroom-live-'));
cpSync(fileURLToPath(new URL('../../tests/end_to_end/page', import.meta.url)), folder, { recursive: true });
const file = join(folder, 'watched.toml');
writeFileSync(file, readFileSync(file, 'utf8').replace('seed = 1', 'seed = 1\npage = ["mark", "stop", "rate"]'));
// Two items that are done when they are told to be, long after they began.
const LATE = ['item-7000001', 'item-7000002'];
const worker = join(folder, 'worker.sh');
const line = (what, id) => `echo "time=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ) msg=item.${what} item=${id}"\n`;
const late = LATE.map((id) => `${line('begun', id)}(until [ -e "${folder}/${id}" ]; do sleep 0.05; done\n${line('done', id)}) &\n`);
writeFileSync(worker, late.join('') + readFileSync(worker, 'utf8'));
const finishLate = (id) => appendFileSync(join(folder, id), '');

const run = spawn(headroom, ['run', file, '--out', join(folder, 'runs'), '--page'], {
  stdio: ['ignore', 'ignore', 'pipe'],
});
const ended = new Promise((done) => run.once('exit', done));
const address = new Promise((found) => {
  const lines = createInterface({ input: run.stderr });
  lines.on('line', (line) => {
    const [url] = line.match(/http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/) ?? [];
    if (url) found(url);
  });
});

const browser = await launch();
const sections = (page) => page.locator('main h2').allInnerTexts();
try {
  const url = await Promise.race([address, ended]);
  assert.equal(typeof url, 'string', `${headroom} run ended with ${url}`);
  const { page, complaints } = await openLive(browser, url);
  assert.equal(await page.title(), 'watched · running · Headroom');

  const life = page.locator('section.life');
  const entities = async () => parseInt((await life.locator('.head p').innerText()).replaceAll(/\D.*/gs, ''), 10);
  await page.waitForFunction(() => /^\s*[1-9]\d entities/.test(document.querySelector('section.life .head p')?.innerText ?? ''));
  await page.waitForFunction(() => document.querySelector('section[aria-labelledby=load-traffic]'));

  // What the reader chose stays while more comes.
  const sort = life.locator('select').first();
  await sort.selectOption('end');
  const chart = life.locator('[role=application]');
  await chart.focus();
  await page.keyboard.press('ArrowDown');
  const card = life.locator('.selected', { hasText: 'item-' });
  const chosen = (await card.innerText()).match(/item-\d+/)[0];
  const before = await entities();
  await page.waitForFunction(
    (than) => parseInt(document.querySelector('section.life .head p').innerText, 10) > than + 10,
    before,
  );
  assert.equal(await sort.inputValue(), 'end');
  assert.match(await card.innerText(), new RegExp(chosen));

  // A row that changes long after those around it is seen, and so is one that changed while nobody heard of it.
  const find = async (id) => {
    await life.getByPlaceholder('Find an id').fill(id);
    await life.getByRole('button', { name: 'Find' }).click();
    await life.locator('.selected', { hasText: id }).waitFor();
  };
  await find(LATE[0]);
  await card.getByText('not seen: done').waitFor();
  finishLate(LATE[0]);
  await card.getByText('not seen').first().waitFor({ state: 'detached' });
  assert.match(await card.innerText(), new RegExp(LATE[0]));
  await find(LATE[1]);
  await card.getByText('not seen: done').waitFor();
  const asked = [];
  await page.context().setOffline(true);
  await page.locator('.live', { hasText: 'does not answer' }).waitFor();
  const away = await entities();
  finishLate(LATE[1]);
  await page.waitForTimeout(3000);
  assert.equal(await entities(), away);
  page.on('request', (request) => request.url().includes('/data') && asked.push(request.headers()['if-none-match']));
  await page.context().setOffline(false);
  await card.getByText('not seen').first().waitFor({ state: 'detached' });
  assert.match(await card.innerText(), new RegExp(LATE[1]));
  await page.waitForFunction(
    (than) => parseInt(document.querySelector('section.life .head p').innerText, 10) > than + 10,
    away,
  );
  assert.match(asked[0], /^"\d+\.[1-9]\d*"$/, 'it asks for what has changed since');
  assert.equal(await sort.inputValue(), 'end');

  // It stands still when it shall.
  await page.getByRole('button', { name: 'Stand still' }).click();
  const still = await page.locator('.live p').innerText();
  await page.waitForTimeout(1000);
  assert.equal(await page.locator('.live p').innerText(), still);
  await page.getByRole('button', { name: 'Go on' }).click();

  // Another rate, and one that is none.
  const rate = page.getByLabel('Rate of traffic');
  const change = page.getByRole('button', { name: 'Change rate' });
  await rate.fill('fast');
  await change.click();
  await page.getByRole('alert').getByText('expected a rate').waitFor();
  await rate.fill('90/s');
  await change.click();
  await page.waitForFunction(() => document.querySelector('[aria-label="Rate of traffic"]')?.placeholder === '90/s');

  // A note is a line on every chart; a run is not ended by a slip of the hand.
  const lines = page.locator('.note');
  const earlier = await lines.count();
  await page.getByLabel('Note at this moment').fill('colder <b>now</b>');
  await page.getByRole('button', { name: 'Mark' }).click();
  const notes = page.getByLabel('Notes', { exact: true });
  await notes.getByText('colder <b>now</b>').waitFor();
  assert.ok((await lines.count()) > earlier + 3);
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('button', { name: 'End the run?' }).waitFor();
  await chart.focus();
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();

  writeFileSync(join(folder, 'go'), '');
  await page.waitForFunction(() => /The run is over/.test(document.querySelector('.live')?.innerText ?? ''));
  assert.equal(await page.title(), 'watched · pass · Headroom');
  assert.equal(await ended, 0);
  await page.waitForTimeout(500);
  // The browser tells of the rate that was refused, and of the connection that was cut.
  const meant = /400 \(Bad Request\).*\/rate|ERR_INTERNET_DISCONNECTED.*\/data/;
  assert.deepEqual(complaints.filter((one) => !meant.test(one)), []);

  const [id] = readdirSync(join(folder, 'runs'));
  const report = await open(browser, join(folder, 'runs', id, 'report.html'));
  assert.deepEqual(await sections(page), await sections(report.page));
  assert.equal(await notes.innerText(), await report.page.getByLabel('Notes', { exact: true }).innerText());
  assert.equal(await page.locator('.verdict').innerText(), await report.page.locator('.verdict').innerText());
  assert.equal(await page.locator('footer').innerText(), await report.page.locator('footer').innerText());
  console.log('ok    a run is watched, and ends as its report');
} finally {
  await browser.close();
  run.kill('SIGTERM');
  await ended;
  rmSync(folder, { recursive: true });
}
