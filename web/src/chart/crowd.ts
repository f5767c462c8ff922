/**
 * Draws many more timelines than there are rows of pixels, by the rules of `raster.ts`: phase by phase over
 * all entities as they lie in memory, for a walk from row to row would wait for memory a million times.
 */

import { NONE } from '../data/lives';
import type { Pieces } from '../data/stats';
import { axisOf, farOnes, linesOf, type Axis, type Crowd } from './places';
import { GAP, Walk } from './raster';
import { sketch } from './sketch';

/** Of a row of pixels so many entities are enough for a picture that is soon replaced. */
const SAMPLE = 256;

/**
 * One code for each pixel, row by row from the top, as `rasterise` has them.
 *
 * A `quick` picture finds the phase in which most entities of a pixel are among some of them only. That
 * there is an entity at all, and far intervals, are told of all of them in this one, too.
 */
export function* crowd(scene: Crowd, quick: boolean): Pieces<Uint8Array> {
  const { lives, rows, width, height, shown, long, survey } = scene;
  const { at, count } = lives;
  const codes = new Uint8Array(width * height);
  if (width === 0) return codes;
  const hides = !shown.every(Boolean);
  // What is hidden leaves holes in lives, for which all are looked at.
  if (quick && !hides) return sketch(scene, Math.max(1, Math.floor((rows[1] - rows[0]) / height / SAMPLE)));
  const axis = axisOf(scene);
  const lines = linesOf(scene, axis.zeros);
  yield;

  /** Entities that are walked through one by one: their intervals are in `alone`, by kind, as row, from and to. */
  const alone: number[][] = at.map(() => []);
  const counted = lines.slice();
  const walk = new Walk(scene);
  const walked = (i: number) => {
    if (counted[i] < 0) return;
    counted[i] = -1;
    // Far ones are in the survey.
    walk.of(i, { add: (code, a, b, far) => far > 0 || alone[code < at.length ? code : 0].push(lines[i], a, b) });
  };
  survey.gaps.forEach(walked);
  // A life within a pixel is told by the phase that is longest in it.
  const wide = new Uint8Array(count);
  if (hides) shown.forEach((is, phase) => is && phase < at.length - 1 && widths(wide, counted, axis, at[phase], at[phase + 1]));
  else widths(wide, counted, axis, lives.first, lives.last);
  narrow(wide, counted).forEach(walked);
  yield;

  const change = new Int32Array((width + 1) * height);
  const most = new Int32Array(width * height);
  // Kind 0 is the gap; the others are phases.
  for (let kind = 0; kind < at.length; kind++) {
    const single = alone[kind];
    let some = single.length > 0;
    for (let k = 0; k < single.length; k += 3) {
      const [from, a, b] = [single[k] * (width + 1), single[k + 1], single[k + 2]];
      if (a >= b) continue;
      change[from + a]++;
      change[from + b]--;
    }
    if (kind > 0 && shown[kind - 1] && tally(change, counted, axis, at[kind - 1], at[kind], long[kind - 1])) some = true;
    if (some) resolve(change, most, codes, width, kind === 0 ? GAP : kind);
    yield;
  }
  farOnes(codes, lines, axis, scene);
  return codes;
}

// The loops below are functions of their own, for the compiler makes more of them than of a generator's.

/** Notes which entities have an interval that ends in another pixel than it begins in. */
function widths(wide: Uint8Array, lines: Int16Array, axis: Axis, begins: Int32Array, ends: Int32Array): void {
  const { zeros, origin, unit, from, scale } = axis;
  for (let i = 0; i < lines.length; i++) {
    if (lines[i] < 0 || begins[i] === NONE || ends[i] === NONE) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    if (Math.floor((origin + begins[i] * unit - zero) * scale) !== Math.floor((origin + ends[i] * unit - zero) * scale)) wide[i] = 1;
  }
}

/** Entities that have none. */
function narrow(wide: Uint8Array, lines: Int16Array): number[] {
  const found: number[] = [];
  for (let i = 0; i < wide.length; i++) if (wide[i] === 0 && lines[i] >= 0) found.push(i);
  return found;
}

/** Adds a phase to the changes of its count; tells whether there was any. */
function tally(change: Int32Array, lines: Int16Array, axis: Axis, begins: Int32Array, ends: Int32Array, far: number): boolean {
  const { zeros, origin, unit, from, scale, width } = axis;
  let some = false;
  for (let i = 0; i < lines.length; i++) {
    const y = lines[i];
    if (y < 0) continue;
    const begin = begins[i];
    const end = ends[i];
    if (begin === NONE || end === NONE || end - begin > far) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    let a = Math.floor((origin + begin * unit - zero) * scale);
    let b = Math.floor((origin + end * unit - zero) * scale);
    if (a < 0) a = 0;
    if (b > width) b = width;
    if (a >= b) continue;
    some = true;
    const row = y * (width + 1);
    change[row + a]++;
    change[row + b]--;
  }
  return some;
}

/** A kind has been counted: it wins where more are of it than of any before. The changes are forgotten. */
function resolve(change: Int32Array, most: Int32Array, codes: Uint8Array, width: number, code: number): void {
  for (let from = 0, pixel = 0; pixel < codes.length; from += width + 1) {
    let n = 0;
    for (let k = from, end = from + width; k < end; k++, pixel++) {
      n += change[k];
      if (n > most[pixel]) {
        most[pixel] = n;
        codes[pixel] = code;
      }
    }
  }
  change.fill(0);
}
