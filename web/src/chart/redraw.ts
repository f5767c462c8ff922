/** Draws pictures of timelines that grow with as much as can be kept of those before. */

import { done, type Pieces } from '../data/stats';
import { byLength, type Survey } from '../data/survey';
import { crowd } from './crowd';
import { Intervals } from './intervals';
import type { Crowd } from './places';
import { rasteriseRow, rowsAt, Walk, Tally } from './raster';

/** A picture of more changed entities is made anew, which is faster then. */
const MOST = 20_000;

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
  for (const i of farChanged(before.scene.survey, scene.survey)) if (i < marks.length) marks[i] = 1;
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

/** Those who have an interval that always shows now and did not, or the other way round. */
function farChanged(before: Survey, now: Survey): Int32Array {
  if (before === now) return new Int32Array(0);
  const entities: number[] = [];
  // What did not change is the same object in both, of a survey that is mended.
  for (let [i, j] = [0, 0]; i < before.far.length || j < now.far.length; ) {
    const [old, own] = [before.far[i], now.far[j]];
    if (old !== own) entities.push((own && (!old || byLength(own, old) < 0) ? own : old).entity);
    if (old && (old === own || !own || byLength(own, old) >= 0)) i++;
    if (own && (old === own || !old || byLength(own, old) < 0)) j++;
  }
  return Int32Array.from(entities);
}

/** The pictures of one chart, one after the other. */
export class Redrawing {
  private last: (Drawn & { whole: boolean }) | null = null;
  private intervals: Intervals | null = null;

  /** The picture of a scene, at once: with everybody counted where that is known, else as `crowd` has it quickly. */
  picture(scene: Crowd): Uint8Array {
    const changed = this.changed(scene);
    if (!changed || !this.intervals?.fits(scene)) this.intervals = null;
    const { last, intervals } = this;
    if (last && changed && intervals) {
      intervals.change(changed, scene);
      intervals.change(farChanged(last.scene.survey, scene.survey), scene);
    }
    // Rows of pixels are drawn anew only in a picture that is as good as the one that could be had instead.
    const mended = last && changed && (last.whole || !intervals?.ready) ? redrawn(last, scene, changed) : null;
    const counted = mended === null && intervals?.ready ? intervals.picture(scene) : null;
    const codes = mended ?? counted ?? done(crowd(scene, true));
    this.last = { scene, codes, whole: counted !== null || (mended !== null && last!.whole) };
    return codes;
  }

  /** A better picture of the last scene was made elsewhere. */
  take(scene: Crowd, codes: Uint8Array): void {
    if (scene === this.last?.scene) this.last = { scene, codes, whole: true };
  }

  /** Does everybody count in the last picture? */
  get whole(): boolean {
    return this.last?.whole === true;
  }

  /** Work after which pictures like that of this scene take less; null: it was begun. */
  prepare(scene: Crowd, piece?: number): Pieces<void> | null {
    if (this.intervals || this.last?.scene !== scene) return null;
    this.intervals = new Intervals(scene);
    return this.intervals.build(piece);
  }

  /** Who has changed since the last picture; null: that is not known. */
  private changed({ lives }: Crowd): Int32Array | null {
    const before = this.last?.scene.lives;
    if (before === lives) return new Int32Array(0);
    return before ? (lives.kept?.changedSince(before, lives) ?? null) : null;
  }
}

/** Are there others in these rows, or is one of them marked? */
function differs(old: Uint32Array, order: Uint32Array, from: number, to: number, marks: Uint8Array): boolean {
  for (let row = from, end = Math.min(to, Math.max(order.length, old.length)); row < end; row++) {
    if (row >= order.length || row >= old.length || old[row] !== order[row] || marks[order[row]] === 1) return true;
  }
  return false;
}
