/** Draws a picture of timelines that grow by drawing those rows of pixels anew in which something has changed. */

import type { Survey } from '../data/survey';
import type { Crowd } from './places';
import { rasteriseRow, rowsAt, Walk, Tally } from './raster';

/** A picture of more changed entities is made anew, which is faster then. */
const MOST = 100_000;

export interface Drawn {
  scene: Crowd;
  codes: Uint8Array;
}

/**
 * The picture of a scene after one that was drawn, of which the entities `changed` have changed since; null: too
 * much has. In rows of pixels that are drawn anew everybody counts; the others stay as they were.
 */
export function redrawn(before: Drawn, scene: Crowd, changed: Int32Array): Uint8Array | null {
  if (!isSamePlace(before.scene, scene)) return null;
  const marks = new Uint8Array(Math.max(scene.lives.count, before.scene.order.length));
  for (let k = 0; k < changed.length; k++) marks[changed[k]] = 1;
  markFar(marks, before.scene.survey, scene.survey);
  const { order, rows, height, width } = scene;
  const old = before.scene.order;
  const anew: number[] = [];
  let entities = 0;
  for (let y = 0; y < height; y++) {
    const [from, to] = rowsAt(y, rows, height);
    if (!differs(old, order, from, to, marks)) continue;
    anew.push(y);
    entities += to - from;
    if (entities > MOST) return null;
  }
  const codes = before.codes.slice();
  const tally = new Tally(scene.lives.points.length, width);
  const walk = new Walk(scene);
  for (const y of anew) {
    const line = codes.subarray(y * width, (y + 1) * width);
    line.fill(0);
    rasteriseRow(scene, rowsAt(y, rows, height), walk, tally, line);
  }
  return codes;
}

/** Is an entity that has not changed where it was? */
function isSamePlace(before: Crowd, now: Crowd): boolean {
  const same = (a: readonly unknown[], b: readonly unknown[]) => a.length === b.length && a.every((one, i) => one === b[i]);
  return (
    before.width === now.width &&
    before.height === now.height &&
    before.align === now.align &&
    before.lives.origin === now.lives.origin &&
    before.lives.unit === now.lives.unit &&
    same(before.rows, now.rows) &&
    same(before.span, now.span) &&
    same(before.shown, now.shown)
  );
}

/** Marks those who have an interval that always shows now and did not, or the other way round. */
function markFar(marks: Uint8Array, before: Survey, now: Survey): void {
  const place = ({ entity, from, to }: Survey['far'][number]) => (entity * 64 + from) * 64 + to;
  const [old, own] = [new Set(before.far.map(place)), new Set(now.far.map(place))];
  for (const one of before.far) if (!own.has(place(one))) marks[one.entity] = 1;
  for (const one of now.far) if (!old.has(place(one))) marks[one.entity] = 1;
}

/** Are there others in these rows, or is one of them marked? */
function differs(old: Uint32Array, order: Uint32Array, from: number, to: number, marks: Uint8Array): boolean {
  for (let row = from, end = Math.min(to, Math.max(order.length, old.length)); row < end; row++) {
    if (row >= order.length || row >= old.length || old[row] !== order[row] || marks[order[row]] === 1) return true;
  }
  return false;
}
