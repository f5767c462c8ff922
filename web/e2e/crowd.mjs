/**
 * A system of as many entities as are asked for, that writes a log: what `speed-live.mjs` watches.
 *
 * `node crowd.mjs ENTITIES A_SECOND FOLDER`: all of them begin in the twenty minutes before now, one after the
 * other, and pass all but the last of sixteen points. Then, from when there is a file `go` in the folder, so many
 * a second pass that one too: in the order in which they began, or from all over, once `go` says so.
 */

import { existsSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const [entities, aSecond] = process.argv.slice(2, 4).map(Number);
const folder = process.argv[4];
const POINTS = 16;
const SPAN_MS = 1_200_000;
/** Changes are written so many times a second. */
const TIMES = 20;

let state = 16;
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
}
const hex = (number) => number.toString(16).padStart(8, '0');
const id = (entity) => `${hex(Math.imul(entity, 0x9e3779b1) >>> 0)}-${hex(entity)}`;
const began = Date.now() - SPAN_MS - 60_000;

let lines = '';
function write(ms, point, entity, group) {
  lines += `ts=${(ms / 1000).toFixed(6)} msg=p.${String.fromCharCode(97 + point)} id=${id(entity)}${group}\n`;
  if (lines.length > 1 << 20) flush();
}
function flush() {
  const bytes = Buffer.from(lines);
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
  lines = '';
}

for (let entity = 0; entity < entities; entity++) {
  let at = began + (entity * SPAN_MS) / entities;
  for (let point = 0; point < POINTS - 1; point++) {
    write(at, point, entity, point === 0 ? ` cell=cell-${entity % 100}` : '');
    // One in a thousand phases takes long.
    at += -Math.log(1 - random()) * 60 * (random() < 1e-3 ? 20 : 1);
  }
}
flush();
writeFileSync(join(folder, 'filled'), '');
const done = new Uint8Array(entities);
let [next, jumps] = [0, 0];
setInterval(() => {
  if (!existsSync(join(folder, 'go'))) return;
  const allOver = readFileSync(join(folder, 'go'), 'utf8') === 'all over';
  for (let n = 0; n < aSecond / TIMES; n++) {
    while (next < entities && done[next] === 1) next++;
    const entity = allOver ? Number((BigInt(jumps++) * 618_033n) % BigInt(entities)) : next;
    if (entity === entities || done[entity] === 1) continue;
    done[entity] = 1;
    write(Date.now(), POINTS - 1, entity, '');
  }
  flush();
}, 1000 / TIMES);
