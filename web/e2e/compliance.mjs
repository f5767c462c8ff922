/**
 * Opens the page of a compliance server in a real browser: without a token, without nodes,
 * with a fleet that reports, and when the server is gone.
 *
 * `npm run e2e:compliance -- HEADROOM [FOLDER]`, where HEADROOM is the program and pictures
 * of both themes and two widths are left in FOLDER.
 */

import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { launch, openLive } from './browser.mjs';
import { start } from './compliance-fleet.mjs';

const [headroom, pictures] = process.argv.slice(2);
assert(headroom, 'which program? npm run e2e:compliance -- HEADROOM');

const NODES = 40;
const browser = await launch();
const fleet = await start(resolve(headroom));
const address = fleet.url;
const { page, complaints } = await openLive(browser, address, { ignoreHTTPSErrors: true });
page.setDefaultTimeout(60_000);
const main = page.locator('main');
const region = (name) => page.locator(`section[aria-labelledby=${name}]`);
const says = (text) => main.getByText(text).first().waitFor();

async function give(token) {
  await page.getByRole('textbox', { name: 'Token' }).fill(token);
  await page.keyboard.press('Enter');
}

try {
  const policy = (await page.request.get(address)).headers()['content-security-policy'];
  assert.match(policy, /default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+';/);

  await says('A token is needed');
  assert.equal(await region('fleet').count(), 0, 'something is shown without a token');
  await give('not-a-token');
  await says('Refused:');
  await give(fleet.token);
  await says('There is no node yet');
  assert(!page.url().includes(fleet.token), 'the token is in the address');
  console.log('ok    a token is asked for, refused and taken; no node yet');

  fleet.agents(NODES);
  await page.reload();
  await region('nodes').locator('tbody tr').first().waitFor();
  await page.waitForFunction(() => /\d+ %\s*of 40 nodes/.test(document.querySelector('main').innerText));
  await region('fleet').locator('.legend').getByText('error').first().waitFor();
  await page.locator('figure svg line').first().waitFor({ state: 'attached' });
  assert.equal(await region('rules').locator('tbody tr').count(), 2);
  console.log('ok    a fleet that reports: its figure, statuses, history and rules');

  // The list of nodes may be older than the figure.
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('section[aria-labelledby=nodes] tbody tr').length === 25);
  const shares = (await region('nodes').locator('tbody td.number').allInnerTexts()).filter((text) => text !== 'not yet').map(parseFloat);
  assert.deepEqual(shares, [...shares].sort((a, b) => a - b), 'not the worst first');
  await region('nodes').getByRole('button', { name: 'Show more' }).click();
  assert.equal(await region('nodes').locator('tbody tr').count(), NODES);
  const name = await region('nodes').locator('tbody button').first().innerText();
  await region('nodes').getByRole('searchbox').fill(name.toUpperCase());
  assert((await region('nodes').locator('tbody button').allInnerTexts()).includes(name));
  await region('nodes').getByRole('searchbox').fill('nobody at all');
  await says('No node has “nobody at all”');
  await region('nodes').getByRole('searchbox').fill('');
  console.log('ok    nodes: worst first, more, found');

  await region('nodes').locator('tbody button').first().focus();
  await page.keyboard.press('Enter');
  await region('node').getByText('Rule ').first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'node');
  for (const summary of await region('node').locator('details:not([open]) > summary').all()) if (await summary.isVisible()) await summary.click();
  assert.match(await region('node').innerText(), /Directive (login|motd)[^]*Text[^]*\/(login|motd)/);
  console.log('ok    a node by the keyboard, down to the value');

  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(wide <= width, `${wide} pixels on a screen of ${width}`);
      if (pictures) await page.screenshot({ path: join(pictures, `${colorScheme}-${width}.png`), fullPage: true });
    }
  }
  assert.doesNotMatch(await main.innerText(), /NaN|undefined|Infinity/);
  await region('node').getByRole('button', { name: 'Close' }).click();
  assert.equal(await region('node').count(), 0);
  console.log('ok    both themes, and a narrow screen');

  await fleet.stopServer();
  await page.getByText('no connection to the server').first().waitFor();
  assert((await region('nodes').count()) === 1, 'what was known stays');
  await page.getByRole('button', { name: 'Forget token' }).click();
  await says('A token is needed');
  assert.equal(await region('nodes').count(), 0, 'something stays of what the token opened');
  console.log('ok    the server is gone: told, and what was known stays until the token is forgotten');
  const own = /401|ERR_CONNECTION_REFUSED|ERR_SOCKET|ERR_EMPTY_RESPONSE|502|ERR_CONNECTION_RESET/;
  assert.deepEqual(complaints.filter((one) => !own.test(one)), []);
} catch (error) {
  console.error(`FAIL  ${error.stack}\n${await main.innerText()}\n${complaints.join('\n')}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  await fleet.stop();
}
