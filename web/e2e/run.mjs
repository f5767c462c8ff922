/**
 * Opens the sample reports in a real browser and uses every control.
 *
 * `npm run e2e -- FOLDER`, where FOLDER was filled by
 * `cargo run -p lab-report --example sample -- FOLDER`.
 */

import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { launch, open } from './browser.mjs';

const folder = resolve(process.argv[2] ?? '../target/samples');
const report = (name) => {
  const runs = readdirSync(folder).filter((entry) => entry.startsWith(`${name}-`));
  // An older sample beside the new one would be tested in its place.
  assert.equal(runs.length, 1, `samples ${name} in ${folder}: empty it and make them with the example \`sample\``);
  return join(folder, runs[0], 'report.html');
};

const browser = await launch();
let failed = 0;

async function check(what, file, use, options) {
  const { page, complaints } = await open(browser, file, options);
  try {
    await use(page);
    assert.deepEqual(complaints, []);
    console.log(`ok    ${what}`);
  } catch (error) {
    failed++;
    console.error(`FAIL  ${what}\n${error.stack}\n${complaints.join('\n')}`);
  }
  await page.close();
}

const life = (page, name = 'task') => page.locator('section.life', { hasText: `Lifecycle of ${name}` });
/** A chart's picture. */
const pixels = (section) =>
  section.locator('canvas').first().evaluate(async (canvas) => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return canvas.toDataURL();
  });

const demo = report('road-to-100-cells');

await check('shows the whole run', demo, async (page) => {
  assert.equal(await page.locator('h1').innerText(), 'road-to-100-cells');
  assert.equal(await page.title(), 'road-to-100-cells · fail · Headroom');
  assert.equal(await page.locator('.verdict tbody tr').count(), 5);
  assert.equal(await page.locator('.ribbon button').count(), 4);
  assert.equal(await page.locator('section.life').count(), 2);
  assert.equal(await page.locator('figure .curve').count(), 3);
  assert.equal(await page.locator('.grid .cell .curve').count(), 16);
  const rows = life(page).locator('table tbody tr');
  assert.equal(await rows.count(), 8);
  assert.match(await life(page).locator('.head').first().innerText(), /99\.95 % complete\s+· not seen: completed 2/);
});

await check('charts are made when they come near the screen, and all of them for paper', demo, async (page) => {
  const made = () => page.locator('.curve svg').count();
  const before = await made();
  assert(before < 19, `${before} curves before anyone scrolls`);
  await page.locator('#processes').scrollIntoViewIfNeeded();
  await page.locator('.grid .cell .curve svg').first().waitFor();
  assert((await made()) > before);
  await page.pdf();
  assert.equal(await made(), 19);
  assert.equal(await page.locator('.life .grid svg').count(), 8 + 7);
});

await check('where processor time went is drawn, and a part of it alone', demo, async (page) => {
  const section = page.locator('section', { has: page.locator('#profile') });
  assert.match(await section.locator('p').first().innerText(), /800 samples, 8\.08 s\s+of processor time, bbs 60\.0 %, rep\.0 40\.0 %/);
  const flame = section.locator('.flame');
  await flame.scrollIntoViewIfNeeded();
  await flame.locator('button').first().waitFor();
  const wide = async (name) => (await flame.getByRole('button', { name: new RegExp(`^${name}: `) }).boundingBox()).width;
  assert.equal(await flame.locator('button').count(), 12);
  const whole = (await flame.boundingBox()).width;
  assert(Math.abs((await wide('encode')) - 0.375 * whole) < 2);
  await flame.getByRole('button', { name: /^commit: / }).click();
  assert.equal(await flame.locator('button').count(), 2);
  assert(Math.abs((await wide('fdatasync \\(kernel\\)')) - whole) < 2);
  await section.getByRole('button', { name: 'Show all' }).click();
  assert.equal(await flame.locator('button').count(), 12);
  assert.equal(await page.locator('section:has(#profile)').count(), 1);
});

await check('groups have names on the chart, and the slowest is a click away', demo, async (page) => {
  const section = life(page);
  await section.getByLabel('Sort by').selectOption('group');
  const names = await section.locator('.rows span').allInnerTexts();
  assert(names.length > 5 && names.every((name) => /^cell-\d+$/.test(name)), names.join());
  const slowest = section.locator('td.group button').first();
  const name = await slowest.innerText();
  await slowest.click();
  assert.deepEqual(await section.locator('.rows span').allInnerTexts(), [name]);
  assert.match(await section.locator('.of').innerText(), /entities in sight/);
});

await check('every sort order and every alignment draws another picture', demo, async (page) => {
  const section = life(page);
  for (const label of ['Sort by', 'Align on']) {
    const select = section.getByLabel(label);
    const values = await select.locator('option').evaluateAll((options) => options.map((option) => option.value));
    assert(values.length >= 10, `${label} has only ${values}`);
    const pictures = new Set();
    for (const value of values) {
      await select.selectOption(value);
      pictures.add(await pixels(section));
    }
    // Aligned on its own start and on its first point an entity is at the same place.
    assert(pictures.size >= values.length - 1, `${label}: ${pictures.size} pictures of ${values.length}`);
    await select.selectOption({ index: 0 });
  }
});

await check('a drag zooms time on every panel, and reset undoes it', demo, async (page) => {
  const section = life(page);
  const before = await pixels(section);
  const plot = section.locator('.plot');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const reset = section.getByRole('button', { name: 'Reset zoom' });
  assert(await reset.isDisabled());
  await page.mouse.move(box.x + 200, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 300, { steps: 5 });
  await page.mouse.up();
  assert(await reset.isEnabled());
  assert.notEqual(await pixels(section), before);
  assert.match(await section.locator('.of').innerText(), /entities in sight/);
  assert.equal(await page.getByRole('button', { name: 'Show the whole run' }).count(), 1);
  await reset.click();
  assert.equal(await pixels(section), before);
  assert.equal(await section.locator('.of').innerText(), 'all entities');
});

await check('the pointer shows an entity and a cursor on every panel; a click keeps it', demo, async (page) => {
  const section = life(page);
  const plot = section.locator('.plot');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + 300, box.y + 200);
  const tip = section.locator('.tip');
  assert.match(await tip.innerText(), /[0-9a-f]{8}-.*\n*cell-\d+/);
  const card = await tip.locator('.id').innerText();
  assert(await page.locator('.ribbon .cursor').count(), 'no cursor on the ribbon');
  await page.mouse.down();
  await page.mouse.up();
  assert.equal(await section.locator('.frame ~ .selected .id').innerText(), card);
  await section.getByRole('button', { name: 'Deselect' }).click();
  assert.equal(await section.locator('.frame ~ .selected').count(), 0);
});

await check('the selected entity shows the log lines that made it', demo, async (page) => {
  const section = life(page);
  // The longest of the first phase, which is one that the page has lines of.
  const worst = section.locator('tbody button.link').nth(0);
  const id = await worst.innerText();
  await worst.click();
  const log = section.locator('.selected .log');
  const lines = log.locator('li');
  assert.equal(await lines.count(), 9);
  for (const line of await lines.allInnerTexts()) assert(line.includes(id) && /^logs\/bbs\.log:\d+/.test(line), line);
  assert.deepEqual(await lines.locator('b').allInnerTexts(), ['desired', 'persisted', 'auctioned', 'allocated', 'started', 'created', 'exited', 'completed', 'resolved']);
  assert.equal(await log.locator('.command').count(), 0);
  // Of the instances there is no log.
  const instances = life(page, 'lrp');
  await instances.locator('tbody button.link').nth(0).click();
  const command = await instances.locator('.selected .log .command').innerText();
  assert.match(command, /^grep -nF -- '[0-9a-f-]{36}' logs\/\*\.log$/);
  assert.match(await instances.locator('.selected .log').innerText(), /road-to-100-cells-20261121-093000/);
});

await check('finds an entity by its id, and says when there is none', demo, async (page) => {
  const section = life(page);
  const worst = section.locator('tbody button.link').nth(4);
  const id = await worst.innerText();
  await section.getByRole('searchbox').fill(id.slice(0, 18));
  await section.getByRole('button', { name: 'Find' }).click();
  assert.equal(await section.locator('.frame ~ .selected .id').innerText(), id);
  assert.equal(await section.locator('.plot .selected').count(), 1);
  await section.getByRole('searchbox').fill('nobody');
  await section.getByRole('button', { name: 'Find' }).click();
  assert.equal(await section.getByRole('status').innerText(), 'No such id');
  await section.locator('tbody button.link').first().click();
  assert.notEqual(await section.locator('.frame ~ .selected .id').innerText(), id);
});

await check('a phase lights up, hides and comes back', demo, async (page) => {
  const section = life(page);
  const phase = section.getByRole('list', { name: 'Phases' }).getByRole('button').nth(4);
  await page.mouse.move(0, 0);
  const before = await pixels(section);
  await phase.hover();
  const lit = await pixels(section);
  assert.notEqual(lit, before);
  await phase.click();
  assert.equal(await phase.getAttribute('aria-pressed'), 'false');
  assert.notEqual(await pixels(section), lit);
  await phase.click();
  assert.equal(await pixels(section), lit);
});

await check('is used with keys alone', demo, async (page) => {
  const section = life(page);
  const plot = section.getByRole('application');
  await plot.focus();
  await page.keyboard.press('ArrowDown');
  const first = await section.locator('.frame ~ .selected .id').innerText();
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await section.locator('.frame ~ .selected .id').innerText(), first);
  const before = await pixels(section);
  await page.keyboard.press('+');
  assert.notEqual(await pixels(section), before);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Escape');
  assert.equal(await pixels(section), before);
});

await check('steps, curves and colours react', demo, async (page) => {
  await page.locator('.ribbon button').nth(2).click();
  await page.getByRole('button', { name: 'Show the whole run' }).click();
  assert.equal(await page.getByRole('button', { name: 'Show the whole run' }).count(), 0);
  const curve = page.locator('.curve .area').first();
  const box = await curve.boundingBox();
  await page.mouse.move(box.x + 100, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 30, { steps: 4 });
  await page.mouse.up();
  assert.equal(await page.getByRole('button', { name: 'Show the whole run' }).count(), 1);
  await curve.dblclick();
  assert.equal(await page.getByRole('button', { name: 'Show the whole run' }).count(), 0);
  const light = await pixels(life(page));
  await page.getByRole('button', { name: 'Switch to dark colours' }).click();
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  assert.notEqual(await pixels(life(page)), light);
  const fit = life(page).getByLabel('Fit to width');
  const fitted = await pixels(life(page));
  await fit.uncheck();
  assert.notEqual(await pixels(life(page)), fitted);
  await page.locator('summary').click();
  assert.match(await page.locator('details pre').innerText(), /road-to-100-cells/);
});

await check('colours and zoom survive a reload', demo, async (page) => {
  await page.getByRole('button', { name: 'Switch to dark colours' }).click();
  const box = await page.locator('.curve .area').first().boundingBox();
  await page.mouse.move(box.x + 100, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 30, { steps: 4 });
  await page.mouse.up();
  const whole = page.getByRole('button', { name: 'Show the whole run' });
  assert.equal(await whole.count(), 1);
  const reload = async () => {
    await page.reload();
    await page.waitForSelector('main[aria-busy=false]');
  };
  await reload();
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  assert.equal(await whole.count(), 1);
  await whole.click();
  await reload();
  assert.equal(await whole.count(), 0);
  const section = life(page);
  const groups = section.locator('.rows span');
  await section.getByLabel('Sort by').selectOption('group');
  await section.locator('td.group button').first().click();
  const one = await groups.allInnerTexts();
  assert.equal(one.length, 1);
  await reload();
  assert.deepEqual(await groups.allInnerTexts(), one);
});

await check('follows the system to dark, and fits 700 pixels', demo, async (page) => {
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(overflow <= 0, `${overflow} pixels too wide`);
}, { colorScheme: 'dark', viewport: { width: 700, height: 900 } });

await check('100,000 entities', report('hundred-thousand'), async (page) => {
  const section = life(page);
  const before = await pixels(section);
  await section.getByLabel('Sort by').selectOption('end');
  assert.notEqual(await pixels(section), before);
  assert.match(await section.locator('.head').first().innerText(), /100,000 entities/);
});

await check('one slow entity in 50,000 of 15 phases is seen at full zoom-out, wherever it is sorted to', report('entities-50000'), async (page) => {
  const section = life(page);
  const canvas = section.locator('canvas').first();
  /** The rows of pixels that are not background where only the slow one can be, and the whole height. */
  const seen = async () => {
    await pixels(section);
    return canvas.evaluate((canvas) => {
      // A copy of one column, which is made to be read again and again.
      const copy = new OffscreenCanvas(1, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, -Math.floor(0.8 * canvas.width), 0);
      const { data } = copy.getImageData(0, 0, 1, canvas.height);
      const colours = [...new Uint32Array(data.buffer)];
      // The first row is that of the first entity, which is long over.
      return { rows: colours.flatMap((colour, y) => (colour === colours[0] ? [] : [y])), height: canvas.height };
    });
  };
  const { rows, height } = await seen();
  assert.deepEqual(rows, [Math.floor((31_765 / 50_000) * height)]);
  for (const sort of ['end', 'total', 'group', '3', '9']) {
    await section.getByLabel('Sort by').selectOption(sort);
    assert.equal((await seen()).rows.length, 1, sort);
  }
  // Also once the picture of all has taken the place of the quick one.
  await page.waitForFunction(() => performance.getEntriesByName('lifecycle-whole').length > 0);
  assert.deepEqual((await seen()).rows.length, 1);
  // Its numbers come in pieces, and name it.
  const worst = section.locator('tbody tr').nth(9).locator('button.link').first();
  assert.equal(await worst.innerText(), '5107e5107e-slow-one');
  await worst.click();
  assert.match(await section.locator('.frame ~ .selected').innerText(), /5107e5107e-slow-one/);
  await section.getByRole('searchbox').fill('slow-one');
  await section.getByRole('button', { name: 'Find' }).click();
  assert.equal(await section.locator('.frame ~ .selected .id').innerText(), '5107e5107e-slow-one');
});

await check('names that try to break out are only text', report('hostile'), async (page) => {
  assert.match(await page.title(), /^hostile/);
  const evil = "</script><script>document.title='broken'</script><!-- \"&'";
  assert.equal(await page.locator('.verdict code').innerText(), evil);
  const section = life(page);
  await section.getByRole('searchbox').fill(evil);
  await section.getByRole('button', { name: 'Find' }).click();
  assert.equal(await section.locator('.frame ~ .selected .id').innerText(), evil);
  const lines = section.locator('.selected .log li');
  assert.equal(await lines.count(), 3);
  assert((await lines.first().innerText()).includes(JSON.stringify(evil)));
});

await check('a run that was not made says why', report('aborted'), async (page) => {
  assert.match(await page.locator('.reason').innerText(), /was not ready within 10 s/);
  assert.equal(await page.locator('section.life').count(), 0);
});

const alone = (name) => join(folder, `load-${name}.html`);
/** Shows every chart, and the tables below them. */
async function whole(page) {
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
}
/** How many different colours a canvas holds. */
const colours = (locator) =>
  locator.evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });

await check('a load shows its validity, its numbers and its charts', alone('valid'), async (page) => {
  assert.equal(await page.title(), 'http://127.0.0.1:8080/ · valid · Headroom');
  assert.equal(await page.locator('header .badge').innerText(), 'VALID');
  assert.equal(await page.locator('.verdict').count(), 0);
  const load = page.locator('section.load');
  assert.match(await load.innerText(), /open loop,\s+poisson 2000\/s/);
  assert.match(await load.innerText(), /Generator ok: busiest thread/);
  assert.match(await load.locator('dl.numbers').innerText(), /asked\s+2,000\/s/);
  await load.locator('.heat canvas').waitFor();
  assert((await colours(load.locator('.heat canvas'))) > 20);
  await whole(page);
  assert.equal(await load.locator('.curve svg').count(), 2);
  assert.match(await load.locator('.gap').innerText(), /^They part at p\d+/);
  assert.match(await load.innerText(), /floor of this machine, 55\.0 µs/);
  assert.match(await load.innerText(), /list routes/);
  const failures = load.locator('table', { hasText: 'Cause' });
  assert.deepEqual(await failures.locator('tbody tr td:first-child').allInnerTexts(), ['read', 'timeout', 'refused']);
});

await check('the heat map leads the cursor, zooms by dragging and by keys', alone('valid'), async (page) => {
  const area = page.locator('.heat .area');
  const canvas = page.locator('.heat canvas');
  await canvas.waitFor();
  const picture = () => pixels(page.locator('.heat'));
  const before = await picture();
  const box = await area.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.8);
  assert.match(await page.locator('section.load figcaption').first().innerText(), /took [\d.]+ .s to [\d.]+ .s/);
  assert((await page.locator('.cursor').count()) >= 3, 'no cursor on every panel');
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 40, { steps: 4 });
  assert((await page.locator('.brush').count()) >= 3, 'no brush on every panel');
  await page.mouse.up();
  assert.equal(await page.locator('.brush').count(), 0);
  assert.notEqual(await picture(), before);
  await page.getByRole('button', { name: 'Show all of the time' }).click();
  assert.equal(await picture(), before);
  await area.focus();
  for (const key of ['+', 'Shift+ArrowRight']) {
    const now = await picture();
    await page.keyboard.press(key);
    assert.notEqual(await picture(), now, key);
  }
  await page.keyboard.press('Escape');
  assert.equal(await picture(), before);
  await page.mouse.move(0, 0);
  const key = page.locator('section.load figcaption').first();
  await page.keyboard.press('ArrowRight');
  const first = await key.innerText();
  assert.doesNotMatch(first, /max max/);
  const told = page.locator('section.load figure [aria-live]').first();
  assert.match(await told.textContent(), /^[\d.]+ .*: max .*, p99 .*, p50 .*, \d+ failed$/);
  for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowRight');
  assert.notEqual(await key.innerText(), first);
  await page.keyboard.press('+');
  await page.keyboard.press('-');
  assert.equal(await picture(), before);
});

await check('the percentile plot is read with the pointer', alone('valid'), async (page) => {
  await whole(page);
  const figure = page.locator('figure', { has: page.getByRole('heading', { name: 'Percentiles' }) });
  const area = figure.locator('.area');
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  const readings = new Set();
  for (const part of [0.1, 0.5, 0.9]) {
    await page.mouse.move(box.x + part * box.width, box.y + 50);
    const text = await figure.locator('figcaption').innerText();
    assert.match(text, /p\d+/);
    readings.add(text);
  }
  assert.equal(readings.size, 3);
});

await check('an INVALID load says why, and what to do', alone('invalid'), async (page) => {
  assert.equal(await page.locator('header .badge').innerText(), 'INVALID');
  const reasons = page.locator('.reasons');
  assert.match(await reasons.innerText(), /say nothing about the target/);
  assert.equal(await reasons.locator('li').count(), 2);
  assert.match(await reasons.innerText(), /more threads, a lower rate/);
  assert.match(await page.locator('section.load').innerText(), /The generator was the limit/);
  assert.match(await page.locator('section.load').innerText(), /loosened: the generator may add 5 ms/);
});

await check('a closed loop is labelled as such', alone('closed'), async (page) => {
  await whole(page);
  const load = page.locator('section.load');
  assert.match(await load.innerText(), /closed loop,\s+8 users/);
  assert.doesNotMatch(await load.locator('dl.numbers').innerText(), /asked/);
  assert.match(await load.locator('.gap').innerText(), /no intended send time/);
  assert.equal(await load.getByText('from actual send').count(), 0);
});

await check('a knee is shown with its interval, every hold, and the law where it may be drawn', alone('knee'), async (page) => {
  await whole(page);
  const capacity = page.locator('.capacity');
  assert.match(await capacity.locator('.knee').innerText(), /holds up to 8,400\/s \(8,249\/s to 8,551\/s with 90 %\)/);
  assert.equal(await capacity.locator('figure').count(), 3);
  assert.equal(await capacity.locator('figure').first().locator('.mark').count(), 17);
  assert.equal(await capacity.locator('figure').first().locator('.band').count(), 2);
  assert.equal(await capacity.locator('figure').first().locator('.mark.invalid').count(), 1);
  await capacity.locator('summary').click();
  const rows = capacity.locator('tbody tr');
  assert.equal(await rows.count(), 17);
  await rows.nth(3).hover();
  assert.equal(await capacity.locator('figure').nth(1).locator('.faded').count(), 16);
  const area = capacity.locator('figure').first().locator('.area');
  await area.scrollIntoViewIfNeeded();
  const mark = await area.locator('.mark').first().boundingBox();
  await page.mouse.move(mark.x + 3, mark.y + 3);
  assert.match(await capacity.locator('figure').first().locator('figcaption').innerText(), /#1: .* at 1,000\/s/);
});

await check('a knee that was not found says why', alone('no-knee'), async (page) => {
  await whole(page);
  const capacity = page.locator('.capacity');
  assert.match(await capacity.innerText(), /No knee was found\./);
  assert.match(await capacity.innerText(), /No rate held: even at 100\/s/);
  assert.equal(await capacity.locator('figure').count(), 2);
  assert.match(await capacity.innerText(), /law is not drawn: three points are too few/);
});

await check('a load without a single answer is no broken page', alone('empty'), async (page) => {
  await whole(page);
  const load = page.locator('section.load');
  assert.match(await load.innerText(), /partial: interrupted after 0\.2 s/);
  assert.match(await load.innerText(), /nothing to draw/);
  assert.match(await load.innerText(), /no curve/);
  assert.doesNotMatch(await load.innerText(), /NaN|undefined|Infinity/);
});

await check('600 slots of 80 bins', alone('huge'), async (page) => {
  await page.locator('.heat canvas').waitFor();
  assert((await colours(page.locator('.heat canvas'))) > 60);
  assert.equal(await page.locator('.heat canvas').evaluate((canvas) => canvas.height), 80);
});

await check('loads of a run share its axis; each step has its result', report('loaded'), async (page) => {
  assert.equal(await page.locator('section.load').count(), 2);
  const front = page.locator('section.load', { has: page.getByRole('heading', { name: 'Load front' }) });
  assert.deepEqual(await front.locator('tbody tr').first().locator('xpath=..').locator('th').allInnerTexts(), ['hold', 'overload', 'find the knee']);
  // The page opens on what was searched for.
  assert.match(await front.locator('div.status').innerText(), /find the knee/);
  await front.getByRole('button', { name: 'overload', exact: true }).click();
  assert.equal(await front.locator('.reasons').count(), 1);
  assert.equal(await front.getByRole('button', { name: 'overload', exact: true }).getAttribute('aria-pressed'), 'true');
  await front.getByRole('button', { name: 'Zoom to hold' }).click();
  await page.getByRole('button', { name: 'Show the whole run' }).click();
  const probe = page.locator('section.load', { has: page.getByRole('heading', { name: 'Load probe' }) });
  const box = await probe.locator('.heat .area').boundingBox();
  await page.mouse.move(box.x + 300, box.y + 50);
  assert.equal(await front.locator('.heat .cursor').count(), 1);
  assert.equal(await page.locator('.ribbon .cursor').count(), 1);
  await whole(page);
  assert.match(await front.innerText(), /Capacity, found in find the knee/);
});

await check('steps that were skipped are shown with the reason, in the words of the terminal', report('loaded'), async (page) => {
  const soak =
    'soak: SKIPPED: 50 % of the knee is asked for, and no hold of "find the knee" confirmed a rate up to the knee that it tells: the time was over';
  const compare = 'compare: SKIPPED: it uses {soaked}, which "soak" keeps, and that was skipped';
  const listed = page.getByRole('list', { name: 'Skipped steps' }).locator('li');
  assert.deepEqual(await listed.allInnerTexts(), [soak, compare]);
  const marks = page.locator('.ribbon .skipped');
  assert.deepEqual(await marks.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label'))), [soak, compare]);
  // Where it would have begun: behind the search, within the ribbon.
  const [mark, search, ribbon] = await Promise.all(
    [marks.first(), page.getByRole('button', { name: 'Zoom to step find the knee' }), page.locator('.ribbon')].map((one) => one.boundingBox()),
  );
  assert.ok(mark.x >= search.x + search.width - 4 && mark.x < ribbon.x + ribbon.width, JSON.stringify([mark, search, ribbon]));
  await page.getByRole('button', { name: 'Zoom to step hold' }).click();
  assert.equal(await marks.count(), 0);
});

await check('a run that skipped nothing says nothing of it', demo, async (page) => {
  assert.equal(await page.getByRole('list', { name: 'Skipped steps' }).count(), 0);
  assert.equal(await page.locator('.ribbon .skipped').count(), 0);
});

await check('a fault is a band on every chart and on the steps, and says what it did', report('loaded'), async (page) => {
  const charts = page.locator('.curve .area, .ribbon');
  const count = await charts.count();
  assert.ok(count > 3, `${count} charts`);
  for (let n = 0; n < count; n++) {
    await charts.nth(n).scrollIntoViewIfNeeded();
    // A chart is made when it comes near the screen.
    await charts.nth(n).locator('.band').waitFor({ state: 'attached' });
  }
  const faults = page.locator('section.faults');
  assert.match(await faults.innerText(), /pause front\s+in hold, at 24\.0? s, for 1\.20? s: they go on\s+probe\.good no effect seen/);
  const whole = await page.locator('.ribbon .band').boundingBox();
  await page.locator('.ribbon .fault').click();
  const zoomed = await page.locator('.ribbon .band').boundingBox();
  assert.ok(zoomed.width > 20 * whole.width, `${whole.width} to ${zoomed.width} pixels`);
});

await check('files that cannot be read are named, and the rest is shown', report('broken'), async (page) => {
  const lines = await page.locator('.problems li').allInnerTexts();
  assert.equal(lines.length, 3, lines.join('\n'));
  assert.match(lines.join('\n'), /lifecycles\/task\.csv: .*line 2/);
  assert.match(lines.join('\n'), /loads\/cut\.json.*line 1/);
  assert.match(lines.join('\n'), /loads\/newer\.json.*schema 99/);
  assert.equal(await page.locator('section.load').count(), 1);
  assert.equal(await page.locator('section.life').count(), 1);
});

const narrow = ['valid', 'invalid', 'knee', 'no-knee', 'empty'].map((name) => [`load-${name}`, alone(name)]);
for (const name of ['road-to-100-cells', 'loaded', 'broken', 'aborted']) narrow.push([name, report(name)]);
for (const [name, file] of narrow) {
  await check(`${name}: dark, 390 pixels wide, every element named, and on paper`, file, async (page) => {
    await whole(page);
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
    for (const details of await page.locator('details').all()) await details.locator('summary').click();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert(overflow <= 0, `${overflow} pixels too wide`);
    const nameless = await page.locator('button, [role=img], [role=application], section').evaluateAll((all) =>
      all.filter((one) => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.textContent.trim())).length,
    );
    assert.equal(nameless, 0);
    assert((await page.pdf()).length > 10_000);
  }, { colorScheme: 'dark', viewport: { width: 390, height: 800 } });
}

await browser.close();
assert(statSync(demo).size < 1_000_000, `the report of the demo has ${statSync(demo).size} bytes`);
const many = statSync(report('entities-50000')).size;
assert(many < 50_000 * 66, `the report of 50,000 entities has ${many} bytes`);
assert(statSync(alone('huge')).size < 500_000, `the report of a huge load has ${statSync(alone('huge')).size} bytes`);
if (failed > 0) {
  console.error(`${failed} failed`);
  process.exit(1);
}
