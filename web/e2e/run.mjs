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
  const run = readdirSync(folder).filter((entry) => entry.startsWith(`${name}-`)).sort().at(-1);
  assert(run, `no sample ${name} in ${folder}: make them with the example \`sample\``);
  return join(folder, run, 'report.html');
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
  const made = () => page.locator('.uplot').count();
  const before = await made();
  assert(before < 19, `${before} curves before anyone scrolls`);
  await page.locator('#processes').scrollIntoViewIfNeeded();
  await page.locator('.grid .cell .uplot').first().waitFor();
  assert((await made()) > before);
  await page.pdf();
  assert.equal(await made(), 19);
  assert.equal(await page.locator('.life .grid svg').count(), 8 + 7);
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
  const curve = page.locator('.u-over').first();
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

await check('names that try to break out are only text', report('hostile'), async (page) => {
  assert.match(await page.title(), /^hostile/);
  const evil = "</script><script>document.title='broken'</script><!-- \"&'";
  assert.equal(await page.locator('.verdict code').innerText(), evil);
  const section = life(page);
  await section.getByRole('searchbox').fill(evil);
  await section.getByRole('button', { name: 'Find' }).click();
  assert.equal(await section.locator('.frame ~ .selected .id').innerText(), evil);
});

await check('a run that was not made says why', report('aborted'), async (page) => {
  assert.match(await page.locator('.reason').innerText(), /was not ready within 10 s/);
  assert.equal(await page.locator('section.life').count(), 0);
});

await browser.close();
assert(statSync(demo).size < 1_000_000, `the report of the demo has ${statSync(demo).size} bytes`);
if (failed > 0) {
  console.error(`${failed} failed`);
  process.exit(1);
}
