/**
 * Opens the page of a service graph in a real browser and uses every control: on a graph
 * that runs, and on a server whose answers are known.
 *
 * `npm run e2e:graph -- HEADROOM`, where HEADROOM is the program.
 */

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, openLive } from './browser.mjs';
import { analysed, made, serve } from './graph-server.mjs';
import { start } from './live-graph.mjs';

const headroom = process.argv[2];
assert(headroom, 'which program? npm run e2e:graph -- HEADROOM');

const browser = await launch();
let failed = 0;

/** `refused`: complaints of the browser that belong to the case, such as answers that say no. */
async function check(what, url, use, { refused = null, ...options } = {}) {
  const { page, complaints } = await openLive(browser, url, options);
  try {
    await use(page);
    assert.deepEqual(complaints.filter((one) => refused === null || !refused.test(one)), []);
    console.log(`ok    ${what}`);
  } catch (error) {
    failed++;
    console.error(`FAIL  ${what}\n${error.stack}\n${complaints.join('\n')}`);
  }
  await page.close();
}

const region = (page, name) => page.locator(`section[aria-labelledby=${name}]`);
const area = (page) => page.getByRole('application');
const badge = (page) => page.locator('header .badge');
const details = (page) => page.locator('article');
/** The drawing, as soon as what was asked for is on it. */
const picture = (page) =>
  page.locator('.drawing canvas').evaluate(async (canvas) => {
    for (let i = 0; i < 3; i++) await new Promise((done) => requestAnimationFrame(done));
    return canvas.toDataURL();
  });
const colours = (page) =>
  page.locator('.drawing canvas').evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
/** The value of a fact in the head of the page. */
const fact = (page, name) => page.locator('header dl div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd').innerText();
const until = (page, test, ...args) => page.waitForFunction(test, ...args);
const text = (page, selector, pattern) =>
  until(page, ([selector, source]) => new RegExp(source, 'si').test(document.querySelector(selector)?.innerText ?? ''), [selector, pattern.source]);

const graph = await start(resolve(headroom), fileURLToPath(new URL('graph.toml', import.meta.url)));
/** There may be no traces yet. */
const early = { refused: /\/analysis/ };

try {
  await check('a running graph shows what it does now', graph.url, async (page) => {
    assert.equal(await page.locator('h1').innerText(), 'shop');
    await text(page, 'header .badge', /live/);
    await until(page, () => /[1-9]/.test(document.querySelector('header dl dd').innerText));
    assert.equal(await page.title(), 'shop · Headroom');
    assert.deepEqual([await fact(page, 'Services'), await fact(page, 'Edges'), await fact(page, 'Instances')], ['5', '5', '5']);
    assert((await colours(page)) > 30);
    const at = await fact(page, 'As of');
    await until(page, (at) => [...document.querySelectorAll('header dd')].at(-1).innerText !== at, at);
    await text(page, 'section[aria-labelledby=services] tbody', /front.*ms/);
    await text(page, 'footer', /mode\s+process/);
  }, early);

  await check('its policy is strict, and the page keeps it', graph.url, async (page) => {
    const answer = await page.request.get(graph.url);
    const policy = answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+';/);
    assert.doesNotMatch(policy, /unsafe|https?:/);
    const ran = await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.broken = true';
      document.body.append(script);
      return window.broken === true;
    });
    assert.equal(ran, false, 'a script that is not the page’s own was run');
  }, { refused: /analysis|Content Security Policy/ });

  await check('traces: the slowest, one as a waterfall, by pointer and by keys', graph.url, async (page) => {
    const traces = region(page, 'traces');
    await traces.locator('tbody button').first().waitFor();
    const list = traces.getByLabel('Show the');
    for (const option of await list.locator('option').evaluateAll((all) => all.map(({ value }) => value))) {
      await list.selectOption(option);
      await traces.locator('tbody button').first().waitFor();
    }
    await list.selectOption('ever');
    await traces.locator('.list').hover();
    await traces.locator('tbody button').first().click();
    const trace = page.locator('figure[aria-label^=Trace]');
    await trace.waitFor();
    const rows = trace.getByRole('treeitem');
    const count = await rows.count();
    assert(count >= 8, `${count} rows`);
    assert((await trace.locator('.row .lit').count()) > 2, 'no critical path');
    assert((await trace.locator('.row .bar.work').count()) > 0 && (await trace.locator('.row .bar.client').count()) > 0);
    const chosen = () => trace.locator('dl[aria-label]').innerText();
    const first = await chosen();
    await rows.nth(2).locator('.name').click();
    assert.notEqual(await chosen(), first);
    await trace.getByRole('tree').focus();
    await page.keyboard.press('Home');
    assert.equal(await chosen(), first);
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await chosen(), first);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await chosen(), first);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await rows.count(), 1);
    await page.keyboard.press('ArrowRight');
    assert.equal(await rows.count(), count);
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await trace.getByRole('button', { name: 'Fold', exact: true }).click();
    assert((await rows.count()) < count);
    await trace.getByRole('button', { name: 'Unfold' }).click();
    assert.equal(await rows.count(), count);
    await rows.first().locator('button').click();
    assert.equal(await rows.count(), 1);
    await trace.getByRole('button', { name: 'Unfold' }).click();

    const whole = trace.getByRole('button', { name: 'Whole time' });
    const ticks = () => trace.locator('.axis').innerText();
    const all = await ticks();
    const box = await trace.locator('.over').boundingBox();
    await page.mouse.move(box.x + 0.2 * box.width, box.y + 60);
    assert.equal(await trace.locator('.cursor').count(), 1);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 60, { steps: 4 });
    await page.mouse.up();
    assert.notEqual(await ticks(), all);
    await whole.click();
    assert.equal(await ticks(), all);
    await trace.getByRole('tree').focus();
    await page.keyboard.press('+');
    assert.notEqual(await ticks(), all);
    await page.keyboard.press('Escape');
    assert.equal(await ticks(), all);

    const id = (await trace.locator('h3 code').innerText()).trim();
    await trace.getByRole('button', { name: 'Close', exact: true }).click();
    assert.equal(await trace.count(), 0);
    await traces.getByRole('searchbox').fill(id);
    await traces.getByRole('button', { name: 'Find' }).click();
    await trace.waitFor();
    assert.match(await trace.locator('h3').innerText(), new RegExp(id));
    await traces.getByRole('searchbox').fill('f'.repeat(32));
    await traces.getByRole('button', { name: 'Find' }).click();
    await text(page, 'section[aria-labelledby=traces] .missed', /not known/);
  }, { refused: /\/analysis|\/traces\/f+/ });

  await check('the budget says in sentences where the time goes', graph.url, async (page) => {
    const budget = region(page, 'budget');
    await budget.scrollIntoViewIfNeeded();
    // The first requests may not be enough; it is asked again by itself.
    await budget.locator('.sentences').waitFor();
    assert.match(await budget.locator('.sentences').innerText(), /p50/);
    const rows = budget.locator('table.lines tbody tr');
    assert((await rows.count()) >= 5, 'too few lines');
    assert.doesNotMatch(await budget.innerText(), /NaN|undefined|Infinity|null/);
    assert((await budget.locator('.bar > div').count()) > 2, 'no causes');
  }, early);

  await check('another profile shows at once; a wrong one is told with its place', graph.url, async (page) => {
    const before = Number(await fact(page, 'Revision'));
    const profile = readFileSync(graph.profile, 'utf8');
    const put = (data) => page.request.put(`${graph.url}profile`, { data, headers: { 'content-type': 'application/toml' } });
    assert.equal((await put(profile.replace('cpu = "200us"', 'cpu = "300us"'))).status(), 200);
    await until(page, (before) => document.querySelector('header dl').innerText.includes(`Revision\n${before + 1}`), before);
    assert.equal((await put(profile.replace('call = "store"', 'call = "stroe"'))).status(), 400);
    await text(page, 'header', /refused.*stroe/);
    writeFileSync(graph.profile, profile.replace('1ms', '2ms'));
    await until(page, (before) => document.querySelector('header dl').innerText.includes(`Revision\n${before + 2}`), before);
    await until(page, () => !document.querySelector('header').innerText.includes('refused'));
  }, early);
} finally {
  await graph.stop();
}

const small = await serve({ ...made(12, 6), '/analysis': analysed() });

await check('the drawing is used with the pointer', small.url, async (page) => {
  const place = async () => {
    await area(page).scrollIntoViewIfNeeded();
    return area(page).boundingBox();
  };
  let box = await place();
  const before = await picture(page);
  const tip = page.locator('.drawing .tip');
  // The pointer goes over the drawing until it has met a service and an edge.
  const met = { service: null, edge: null };
  for (let x = 30; x < box.width && !(met.service && met.edge); x += 24) {
    for (let y = 20; y < box.height; y += 16) {
      await page.mouse.move(box.x + x, box.y + y);
      if ((await tip.count()) === 0) continue;
      const title = await tip.locator('strong').innerText();
      met[title.includes('→') ? 'edge' : 'service'] ??= { x: box.x + x, y: box.y + y, title };
    }
  }
  assert(met.service && met.edge, `the pointer met ${JSON.stringify(met)}`);
  await page.mouse.click(met.service.x, met.service.y);
  assert.equal(await details(page).locator('h3').innerText(), met.service.title);
  assert.match(await details(page).innerText(), /What a request to \/ does\s+work: cpu/);
  await page.mouse.click(met.edge.x, met.edge.y);
  assert.equal((await details(page).locator('h3').innerText()).replace(/\s+/g, ' '), met.edge.title);
  await details(page).locator('h3 button').first().click();
  assert.equal(await details(page).locator('h3').innerText(), met.edge.title.split(' → ')[0]);
  await details(page).locator('.of').first().click();
  assert.match(await details(page).locator('h3').innerText(), /→/);
  await details(page).getByRole('button', { name: 'Deselect' }).click();
  assert.equal(await details(page).count(), 0);

  // Looking at details has scrolled the page.
  box = await place();
  const all = page.getByRole('button', { name: 'Show all' }).first();
  assert(await all.isDisabled());
  await page.mouse.move(box.x + 300, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + 380, box.y + 90, { steps: 4 });
  await page.mouse.up();
  assert.equal(await details(page).count(), 0, 'a drag is no click');
  assert.notEqual(await picture(page), before);
  assert(await all.isEnabled());
  await all.click();
  for (const name of ['Zoom in', 'Zoom out']) {
    const now = await picture(page);
    await page.getByRole('button', { name }).click();
    assert.notEqual(await picture(page), now, name);
  }
  await all.click();
  box = await place();
  const top = await page.evaluate(() => scrollY);
  await page.mouse.move(box.x + 300, box.y + 200);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await until(page, () => !document.querySelector('.tools button:nth-of-type(3)').disabled);
  assert.equal(await page.evaluate(() => scrollY), top, 'zooming scrolls the page');
});

await check('the drawing is walked with keys', small.url, async (page) => {
  await area(page).focus();
  await page.keyboard.press('ArrowRight');
  assert.equal(await details(page).locator('h3').innerText(), 'service-0');
  await page.keyboard.press('ArrowRight');
  const callee = await details(page).locator('h3').innerText();
  assert.notEqual(callee, 'service-0');
  assert.match(await area(page).getAttribute('aria-label'), new RegExp(`${callee}: .*/s, p50`));
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await details(page).locator('h3').innerText(), callee);
  await page.keyboard.press('ArrowUp');
  assert.equal(await details(page).locator('h3').innerText(), callee);
  await page.keyboard.press('ArrowLeft');
  assert.equal(await details(page).locator('h3').innerText(), 'service-0');
  for (const key of ['+', '+', '-', '0']) {
    const now = await picture(page);
    await page.keyboard.press(key);
    assert.notEqual(await picture(page), now, key);
  }
  await page.keyboard.press('Escape');
  assert.equal(await details(page).count(), 0);
});

await check('services are sorted and found', small.url, async (page) => {
  const services = region(page, 'services');
  const names = () => services.locator('tbody .name').allInnerTexts();
  const orders = new Set();
  for (const button of await services.locator('thead button').all()) {
    await button.click();
    assert.equal(await services.locator('th[aria-sort]').count(), 1);
    orders.add((await names()).join());
  }
  assert(orders.size >= 5, `${orders.size} orders`);
  await services.getByRole('searchbox').fill('E-1');
  assert.deepEqual((await names()).sort(), ['service-1', 'service-10', 'service-11']);
  await services.locator('tbody button').first().click();
  assert.match(await details(page).locator('h3').innerText(), /^service-1/);
  await services.getByRole('searchbox').fill('nobody');
  assert.match(await services.getByRole('status').innerText(), /No service has “nobody”/);
});

await check('the budget: expected against seen, sorted, with causes', small.url, async (page) => {
  const budget = region(page, 'budget');
  await budget.locator('.sentences').waitFor();
  assert.match(await budget.locator('.sentences').innerText(), /p99 is 8\.0 ms above p50/);
  assert.match(await budget.locator('.notes').innerText(), /p99\.9 is not said/);
  assert.match(await budget.innerText(), /p99\s+9\.10 ms\s+12\.8 ms\s+\+3\.70 ms/);
  assert.match(await budget.innerText(), /service-1 stayed at 2 at once for 60\.0 % of its busy time: the limit is workers of service-1/);
  const first = () => budget.locator('table.lines tbody tr').first().innerText();
  const orders = new Set([await first()]);
  for (const button of await budget.locator('table.lines thead button').all()) {
    await button.click();
    orders.add(await first());
  }
  assert(orders.size >= 2);
  await budget.getByRole('list', { name: 'Causes' }).getByRole('button').nth(1).hover();
  assert((await budget.locator('.bar .faded').count()) > 1);
  await page.mouse.move(0, 0);
  const asked = small.asked['/analysis'];
  await budget.getByRole('button', { name: 'Analyse again' }).click();
  await until(page, () => document.querySelector('section[aria-labelledby=budget]').getAttribute('aria-busy') === 'false');
  assert(small.asked['/analysis'] > asked);
  await budget.locator('table.lines tbody button').first().click();
  assert.equal(await details(page).count(), 1);
  await budget.getByRole('button', { name: '→' }).first().click();
  assert.match(await details(page).locator('h3').innerText(), /→/);
});

await check('asks every second, other stretches, and nothing while it is paused or hidden', small.url, async (page) => {
  const stats = [];
  page.on('request', (request) => stats.push(new URL(request.url())));
  const answered = (seconds) => page.waitForResponse((answer) => answer.url().includes(`/stats?seconds=${seconds}`));
  for (const seconds of ['1', '60']) {
    const next = answered(seconds);
    await page.getByLabel('Figures of the last').selectOption(seconds);
    await next;
  }
  const tick = async () => {
    await page.clock.runFor(30_000);
    // What was asked has been answered once this is.
    await page.evaluate(() => fetch('/topology'));
  };
  await page.getByRole('button', { name: 'Pause' }).click();
  assert.equal(await badge(page).innerText(), 'PAUSED');
  await tick();
  stats.length = 0;
  await tick();
  assert.deepEqual(stats.map(({ pathname }) => pathname), ['/topology']);
  await page.getByRole('button', { name: 'Go on' }).click();
  await until(page, () => /live/i.test(document.querySelector('header .badge').innerText));
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await tick();
  stats.length = 0;
  await tick();
  assert.deepEqual(stats.map(({ pathname }) => pathname), ['/topology']);
  const next = answered('60');
  await page.evaluate(() => {
    Object.defineProperty(document, 'hidden', { value: false, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await next;
}, { before: (page) => page.clock.install() });

await check('a graph that is gone is told, and comes back', small.url, async (page) => {
  await text(page, 'header .badge', /live/);
  const stats = small.answers['/stats'];
  small.answers['/stats'] = () => null;
  await text(page, 'header', /does not answer: no connection.*What is shown is of \d\d:\d\d:\d\d/);
  assert.equal(await badge(page).innerText(), 'LOST');
  assert((await colours(page)) > 30, 'the last figures are gone');
  small.answers['/stats'] = { status: 500, error: 'the watch is broken' };
  await text(page, 'header', /does not answer: the watch is broken/);
  small.answers['/stats'] = stats;
  await text(page, 'header .badge', /live/);
  assert.doesNotMatch(await page.locator('header').innerText(), /does not answer/);
}, { refused: /\/stats/ });

await check('a new profile draws anew, and what it lacks is not looked at', small.url, async (page) => {
  await area(page).focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
  assert.equal(await details(page).count(), 1);
  const before = { ...small.answers };
  const one = made(1, 0);
  one['/topology'].revision = 2;
  Object.assign(small.answers, one, { '/stats': () => ({ ...one['/stats'](), revision: 2 }) });
  await until(page, () => document.querySelector('h1').innerText === 'made-1');
  assert.equal(await details(page).count(), 0);
  assert.equal(await fact(page, 'Edges'), '0');
  Object.assign(small.answers, before);
  await until(page, () => document.querySelector('h1').innerText === 'made-12');
}, { refused: /\/analysis/ });

await check('the colours of the page follow the reader', small.url, async (page) => {
  const light = await picture(page);
  await page.getByRole('button', { name: 'Switch to dark colours' }).click();
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  assert.notEqual(await picture(page), light);
});

await check('dark, 400 pixels wide, every element named, and on paper', small.url, async (page) => {
  assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  await region(page, 'budget').locator('.sentences').waitFor();
  await area(page).focus();
  await page.keyboard.press('ArrowRight');
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(overflow <= 0, `${overflow} pixels too wide`);
  const nameless = await page.locator('button, input, select, [role=img], [role=application], section').evaluateAll((all) =>
    all.filter((one) => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.labels?.length || one.textContent.trim())).length,
  );
  assert.equal(nameless, 0);
  assert((await page.pdf()).length > 10_000);
}, { colorScheme: 'dark', viewport: { width: 400, height: 800 } });
await small.stop();

const large = await serve(made(1000, 2500));
await check('a thousand services are drawn, walked and searched', large.url, async (page) => {
  await text(page, 'header .badge', /live/);
  assert((await colours(page)) > 30);
  const before = await picture(page);
  await area(page).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  assert.notEqual(await picture(page), before);
  await region(page, 'services').getByRole('searchbox').fill('service-777');
  await region(page, 'services').locator('tbody button').first().click();
  assert.equal(await details(page).locator('h3').innerText(), 'service-777');
  // It was brought near, to where names can be read.
  assert(await page.getByRole('button', { name: 'Show all' }).first().isEnabled());
  await region(page, 'services').getByRole('searchbox').fill('');
  await region(page, 'services').getByRole('button', { name: 'Show all 1,000' }).click();
  assert.equal(await region(page, 'services').locator('tbody tr').count(), 1000);
}, { refused: /\/analysis/ });
await large.stop();

const evil = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>{{x}}";
const hostile = made(3, 0);
const named = JSON.parse(JSON.stringify(hostile['/topology']).replaceAll('service-1', JSON.stringify(evil).slice(1, -1)));
const cold = await serve({
  ...hostile,
  '/topology': { ...named, name: evil, deployment: { mode: evil, warnings: [evil], profile: { refused: evil } } },
  '/stats': { at_unix_ms: 0, seconds: 0, revision: 1, services: [], edges: [] },
  '/analysis': { status: 503, error: evil },
});
await check('names that try to break out are only text; without requests there are no figures', cold.url, async (page) => {
  assert.equal(await page.locator('h1').innerText(), evil);
  await region(page, 'services').getByRole('button', { name: 'Service', exact: true }).click();
  await region(page, 'services').locator('tbody button').first().click();
  assert.equal(await details(page).locator('h3').innerText(), evil);
  await text(page, 'section[aria-labelledby=budget]', /There is no analysis: <\/script>/);
  assert.match(await region(page, 'traces').innerText(), /No trace was recorded/);
  assert.doesNotMatch(await page.locator('#app').innerText(), /NaN|undefined|Infinity|\bnull\b/);
  assert.equal(await page.title(), `${evil} · Headroom`);
}, { refused: /\/analysis/ });
await cold.stop();

await browser.close();
if (failed > 0) {
  console.error(`${failed} failed`);
  process.exit(1);
}
