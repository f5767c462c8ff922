/**
 * What the page itself does for one update of a run of many entities, in processor time of this program:
 * `npm run speed:updates -- [ENTITIES] [CHANGES]`. A browser, which draws besides, is measured by `speed:live`.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';

const [entities, changes] = [2, 3].map((at, i) => Number(process.argv[at] ?? [1_000_000, 1000][i]));
const folder = mkdtempSync(join(tmpdir(), 'headroom-updates-'));
try {
  const entry = fileURLToPath(new URL('updates.ts', import.meta.url));
  await build({ configFile: false, logLevel: 'error', build: { ssr: entry, outDir: folder, emptyOutDir: false } });
  const { measure } = await import(pathToFileURL(join(folder, 'updates.js')).href);
  measure(entities, changes);
} finally {
  rmSync(folder, { recursive: true });
}
