/**
 * Draws many more timelines than there are rows of pixels, by the rules of `raster.ts`: phase by phase over
 * all entities as they lie in memory, for a walk from row to row would wait for memory a million times.
 */

import { NONE, type Lives } from '../data/lives';
import type { Pieces } from '../data/stats';
import type { Survey } from '../data/survey';
import { BACKGROUND, GAP, rowsAt, SKEW, Walk, type Scene } from './raster';

/** Of a row of pixels so many entities are enough for a picture that is soon replaced. */
const SAMPLE = 256;

export interface Crowd extends Scene {
  survey: Survey;
}

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
  const axis = axisOf(scene);
  const lines = linesOf(scene, axis.zeros);
  yield;

  const hides = !shown.every(Boolean);
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

  // What is hidden leaves holes in lives, for which all are looked at.
  const step = quick && !hides ? Math.max(1, Math.floor((rows[1] - rows[0]) / height / SAMPLE)) : 1;
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
    if (kind > 0 && shown[kind - 1] && tally(change, counted, axis, at[kind - 1], at[kind], long[kind - 1], step)) some = true;
    if (some) resolve(change, most, codes, width, kind === 0 ? GAP : kind);
    yield;
  }
  farOnes(codes, lines, axis, scene);
  if (step === 1) return codes;
  yield;
  // Those that were not counted show where nobody else is.
  const seen = stragglers(codes, counted, axis, lives, step);
  yield;
  for (let phase = 0; phase < at.length - 1; phase++) claim(codes, seen, lines, axis, at[phase], at[phase + 1], phase + 1);
  return codes;
}

/** How a number becomes a place. */
interface Axis {
  zeros: Int32Array | null;
  origin: number;
  unit: number;
  from: number;
  scale: number;
  width: number;
  x: (number: number, entity: number) => number;
}

function axisOf({ lives, align, span, width }: Scene): Axis {
  const { origin, unit, first, at } = lives;
  const zeros = align === 'run' ? null : align === 'start' ? first : at[align];
  const scale = width / (span[1] - span[0]);
  const x = (number: number, entity: number) => {
    const zero = zeros ? span[0] + (origin + zeros[entity] * unit) : span[0];
    return Math.floor((origin + number * unit - zero) * scale);
  };
  return { zeros, origin, unit, from: span[0], scale, width, x };
}

/** For each entity the row of pixels that it is in; -1: none. */
function linesOf({ lives, order, rows, height }: Scene, zeros: Int32Array | null): Int16Array {
  const lines = new Int16Array(lives.count).fill(-1);
  for (let y = 0; y < height; y++) {
    const [from, to] = rowsAt(y, rows, height);
    for (let row = from, end = Math.min(to, order.length); row < end; row++) lines[order[row]] = y;
  }
  const { first } = lives;
  for (let i = 0; i < lines.length; i++) if (first[i] === NONE || (zeros && zeros[i] === NONE)) lines[i] = -1;
  return lines;
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

/** Draws the intervals that always show, the longest last. */
function farOnes(codes: Uint8Array, lines: Int16Array, axis: Axis, { lives, shown, survey }: Crowd): void {
  const { x, width } = axis;
  for (const { entity, from, to } of survey.far) {
    const y = lines[entity];
    if (y < 0 || (to === from + 1 && !shown[from])) continue;
    const [begin, end] = [lives.at[from][entity], lives.at[to][entity]];
    const back = end < begin;
    const a = Math.max(x(back ? end : begin, entity), 0);
    const b = Math.min(x(back ? begin : end, entity), width);
    if (a < b) codes.fill(back ? SKEW : to, y * width + a, y * width + b);
  }
}

/** Adds a phase of one in `step` entities to the changes of its count; tells whether there was any. */
function tally(change: Int32Array, lines: Int16Array, axis: Axis, begins: Int32Array, ends: Int32Array, far: number, step: number): boolean {
  const { zeros, origin, unit, from, scale, width } = axis;
  let some = false;
  for (let i = 0; i < lines.length; i += step) {
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

/** Of a pixel in which there is somebody of whom nothing else is known yet. */
const CLAIMED = 253;

/** Finds those entities that were not counted and are where the background is still seen, and claims these pixels for them. */
function stragglers(codes: Uint8Array, lines: Int16Array, axis: Axis, { first, last }: Lives, step: number): Uint32Array {
  const { zeros, origin, unit, from, scale, width } = axis;
  const stride = width + 1;
  // How much background was left of each pixel of a row; less becomes of it.
  const empty = new Int16Array((codes.length / width) * stride);
  for (let line = 0, pixel = 0; pixel < codes.length; line += stride) {
    for (let k = line, end = line + width, n = 0; k < end; k++, pixel++) {
      if (codes[pixel] === BACKGROUND) n++;
      empty[k + 1] = n;
    }
  }
  const found = new Uint32Array(lines.length);
  let n = 0;
  for (let i = 0; i < lines.length; i++) {
    const y = lines[i];
    if (y < 0 || i % step === 0) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    let a = Math.floor((origin + first[i] * unit - zero) * scale);
    let b = Math.floor((origin + last[i] * unit - zero) * scale);
    if (a < 0) a = 0;
    if (b > width) b = width;
    if (a >= b || empty[y * stride + b] === empty[y * stride + a]) continue;
    let some = false;
    for (let pixel = y * width + a, end = y * width + b; pixel < end; pixel++) {
      if (codes[pixel] !== BACKGROUND) continue;
      codes[pixel] = CLAIMED;
      some = true;
    }
    if (some) found[n++] = i;
  }
  return found.subarray(0, n);
}

/** Gives those pixels to a phase that were claimed for somebody who is in it. */
function claim(codes: Uint8Array, seen: Uint32Array, lines: Int16Array, axis: Axis, begins: Int32Array, ends: Int32Array, code: number): void {
  const { zeros, origin, unit, from, scale, width } = axis;
  for (let k = 0; k < seen.length; k++) {
    const i = seen[k];
    const begin = begins[i];
    const end = ends[i];
    if (begin === NONE || end === NONE) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    let a = Math.floor((origin + begin * unit - zero) * scale);
    let b = Math.floor((origin + end * unit - zero) * scale);
    if (a < 0) a = 0;
    if (b > width) b = width;
    const row = lines[i] * width;
    for (let pixel = row + a; pixel < row + b; pixel++) if (codes[pixel] === CLAIMED) codes[pixel] = code;
  }
}
