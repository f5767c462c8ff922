/** A browser that opens reports from disk and reaches nothing else. */

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? places.find(existsSync),
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Opens `file`; `complaints` collects every error, and every request but the file itself. */
export async function open(browser, file, options = {}) {
  const address = pathToFileURL(file).href;
  return visit(browser, address, (url) => url === address, options);
}

/** Opens the page of a server; `complaints` collects every error, and every request to another server. */
export async function openLive(browser, address, options = {}) {
  const { origin } = new URL(address);
  return visit(browser, address, (url) => new URL(url).origin === origin, options);
}

async function visit(browser, address, mayAsk, { before, ...options }) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 }, ...options });
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(`error: ${error.stack}`));
  page.on('request', (request) => {
    const url = request.url();
    if (!mayAsk(url) && !url.startsWith('data:')) complaints.push(`request: ${url}`);
  });
  await before?.(page);
  await page.goto(address);
  await page.waitForSelector('main[aria-busy=false]');
  return { page, complaints };
}
