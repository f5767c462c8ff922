/**
 * Draws many more timelines than there are rows of pixels, by the rules of `raster.ts`: phase by phase over
 * all entities as they lie in memory, for a walk from row to row would wait for memory a million times.
 */

import { NONE } from '../data/lives';
import type { Pieces } from '../data/stats';
import { Counts } from './counts';
import { axisOf, drawOutliers, linesOf, type Axis, type Crowd } from './places';
import { GAP, Walk } from './raster';
import { stragglers } from './stragglers';

/** Of a row of pixels so many entities are enough for a picture that is soon replaced. */
const SAMPLE = 256;
/** Entities whose numbers lie beside each other; all of them count or none, for memory is read in such lines. */
const BLOCK_BITS = 4;
const BLOCK = 1 << BLOCK_BITS;

/**
 * One code for each pixel, row by row from the top, as `rasterise` has them.
 *
 * A `quick` picture finds the phase in which most entities of a pixel are among some of them only. That
 * there is an entity at all, and far intervals, are told of all of them in this one, too.
 */
export function* crowd(scene: Crowd, quick: boolean): Pieces<Uint8Array> {
  const { lives, rows, width, height, shown, long, survey } = scene;
  const { at } = lives;
  const codes = new Uint8Array(width * height);
  if (width === 0) return codes;
  // What is hidden leaves holes in lives, for which all are looked at.
  const hides = !shown.every(Boolean);
  const most = quick && !hides ? SAMPLE : Counts.MOST;
  const step = Math.max(1, Math.floor((rows[1] - rows[0]) / height / most));
  const axis = axisOf(scene);
  const lines = linesOf(scene, axis.zeros);
  const some = someOf(lines, step);
  const counts = new Counts(width, height);
  yield;

  /** Intervals of entities that lack a point between others, by kind: as row, from and to. */
  const gaps: number[][] = at.map(() => []);
  const walk = new Walk(scene);
  for (const i of survey.gaps) {
    const k = placeOf(i, step);
    if (k < 0 || some.lines[k] < 0) continue;
    const y = some.lines[k];
    some.lines[k] = -1;
    // Far ones are in the survey.
    walk.of(i, { add: (code, a, b, far) => far > 0 || gaps[code < at.length ? code : 0].push(y, a, b) });
  }
  yield;
  // A life within a pixel is told by the phase that is longest in it.
  const wide = new Uint8Array(some.who.length);
  if (hides) {
    for (let phase = 1; phase < at.length; phase++) if (shown[phase - 1]) widths(wide, some, axis, at[phase - 1], at[phase]);
  } else widths(wide, some, axis, lives.first, lives.last);
  const subpixel = subpixelLives(wide, some);
  for (let phase = 1; phase < at.length; phase++, yield) {
    if (shown[phase - 1]) longest(subpixel, some.who, axis, at[phase - 1], at[phase], phase);
  }

  const xs = new Int16Array(some.who.length);
  // Kind 0 is the gap; the others are phases.
  for (let kind = 0; kind < at.length; kind++, yield) {
    for (let k = 0; k < gaps[kind].length; k += 3) counts.add(gaps[kind][k], gaps[kind][k + 1], gaps[kind][k + 2]);
    if (kind === 0) places(xs, some, axis, at[0]);
    else {
      tally(counts, xs, some, axis, at[kind - 1], at[kind], shown[kind - 1] ? long[kind - 1] : -1);
      for (let t = 0; t < subpixel.code.length; t++) {
        if (subpixel.code[t] === kind) counts.add(subpixel.lines[t], Math.max(subpixel.xs[t], 0), Math.min(subpixel.xs[t] + 1, width));
      }
    }
    counts.resolve(codes, kind === 0 ? GAP : kind);
  }
  drawOutliers(codes, lines, axis, scene);
  // Those that were not counted show where nobody else is.
  if (step > 1) stragglers(codes, lines, axis, lives, (i) => placeOf(i, step) >= 0);
  return codes;
}

/** Those that are counted, and the row of pixels of each; -1: none. */
interface Some {
  who: Uint32Array;
  lines: Int16Array;
}

function someOf(lines: Int16Array, step: number): Some {
  const stride = BLOCK * step;
  const most = Math.ceil(lines.length / stride) * BLOCK;
  const some = { who: new Uint32Array(most), lines: new Int16Array(most).fill(-1) };
  for (let from = 0, k = 0; from < lines.length; from += stride, k += BLOCK) {
    for (let j = 0; j < BLOCK && from + j < lines.length; j++) {
      some.who[k + j] = from + j;
      some.lines[k + j] = lines[from + j];
    }
  }
  return some;
}

/** The place of an entity among those that are counted; -1: it is not. */
function placeOf(entity: number, step: number): number {
  const block = entity >> BLOCK_BITS;
  return block % step === 0 ? (block / step) * BLOCK + (entity & (BLOCK - 1)) : -1;
}

/** Lives within a pixel: each is told by the phase that is longest in it. */
interface SubpixelLives {
  places: Uint32Array;
  lines: Int16Array;
  length: Int32Array;
  code: Int32Array;
  xs: Int32Array;
}

/** Takes those that have no wide interval out of those that are counted phase by phase. */
function subpixelLives(wide: Uint8Array, { lines }: Some): SubpixelLives {
  const places = new Uint32Array(lines.length);
  const own = new Int16Array(lines.length);
  let n = 0;
  for (let k = 0; k < lines.length; k++) {
    if (lines[k] < 0 || wide[k] === 1) continue;
    [places[n], own[n++]] = [k, lines[k]];
    lines[k] = -1;
  }
  return { places: places.subarray(0, n), lines: own.subarray(0, n), length: new Int32Array(n).fill(-1), code: new Int32Array(n), xs: new Int32Array(n) };
}

// The loops below are functions of their own, for the compiler makes more of them than of a generator's.

/** Notes which entities have an interval that ends in another pixel than it begins in. */
function widths(wide: Uint8Array, { who, lines }: Some, axis: Axis, begins: Int32Array, ends: Int32Array): void {
  const { zeros, origin, unit, from, scale } = axis;
  for (let k = 0; k < who.length; k++) {
    const i = who[k];
    if (lines[k] < 0 || begins[i] === NONE || ends[i] === NONE) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    if (Math.floor((origin + begins[i] * unit - zero) * scale) !== Math.floor((origin + ends[i] * unit - zero) * scale)) wide[k] = 1;
  }
}

function longest(subpixel: SubpixelLives, who: Uint32Array, axis: Axis, begins: Int32Array, ends: Int32Array, phase: number): void {
  const { places, length, code, xs } = subpixel;
  for (let t = 0; t < places.length; t++) {
    const i = who[places[t]];
    if (begins[i] === NONE || ends[i] === NONE || ends[i] - begins[i] <= length[t]) continue;
    length[t] = ends[i] - begins[i];
    code[t] = phase;
    xs[t] = Math.min(Math.max(axis.x(begins[i], i), -1), axis.width);
  }
}

/** Where the first point of each lies, within the picture. */
function places(xs: Int16Array, { who, lines }: Some, axis: Axis, numbers: Int32Array): void {
  const { zeros, origin, unit, from, scale, width } = axis;
  for (let k = 0; k < who.length; k++) {
    if (lines[k] < 0) continue;
    const i = who[k];
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    const x = Math.floor((origin + numbers[i] * unit - zero) * scale);
    xs[k] = x < 0 ? 0 : x > width ? width : x;
  }
}

/** Counts a phase of each; `xs` has where it begins, and then where it ends. */
function tally(counts: Counts, xs: Int16Array, { who, lines }: Some, axis: Axis, begins: Int32Array, ends: Int32Array, far: number): void {
  const { zeros, origin, unit, from, scale, width } = axis;
  const { change, left, right } = counts;
  for (let k = 0; k < who.length; k++) {
    const y = lines[k];
    if (y < 0) continue;
    const i = who[k];
    const end = ends[i];
    if (end === NONE) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    let b = Math.floor((origin + end * unit - zero) * scale);
    if (b < 0) b = 0;
    if (b > width) b = width;
    const a = xs[k];
    xs[k] = b;
    const begin = begins[i];
    if (a >= b || begin === NONE || end - begin > far) continue;
    const row = y * (width + 1);
    change[row + a]++;
    change[row + b]--;
    if (a < left[y]) left[y] = a;
    if (b > right[y]) right[y] = b;
  }
}
