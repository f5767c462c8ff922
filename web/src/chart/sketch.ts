/**
 * A picture of many timelines that is made at once: the phase of most is found among some of them.
 *
 * That there is an entity at all, and intervals that always show, are told of everybody.
 */

import { NONE, type Lives } from '../data/lives';
import { axisOf, farOnes, linesOf, type Axis, type Crowd } from './places';
import { BACKGROUND, GAP, SKEW, Walk, type Taker } from './raster';

/** Entities whose numbers lie beside each other; all of them count or none, for memory is read in such lines. */
const BLOCK_BITS = 4;
const BLOCK = 1 << BLOCK_BITS;
/** In so few pixels the phases of an entity are looked for one by one. */
const FEW_PIXELS = 4;
/** Of a pixel in which there is somebody of whom nothing else is known yet. */
const CLAIMED = 253;

/** One code for each pixel, as `crowd` has them; one block of entities in `step` counts. Every phase is shown. */
export function sketch(scene: Crowd, step: number): Uint8Array {
  const { lives, width, height, long, survey } = scene;
  const { at } = lives;
  const codes = new Uint8Array(width * height);
  const axis = axisOf(scene);
  const lines = linesOf(scene, axis.zeros);
  const some = someOf(lines, step);
  const counts = new Counts(width, height);

  const walk = new Walk(scene);
  const gaps: number[][] = at.map(() => []);
  for (const i of survey.gaps) {
    const k = placeOf(i, step);
    if (k < 0 || some.lines[k] < 0) continue;
    const y = some.lines[k];
    some.lines[k] = -1;
    // Far ones are in the survey.
    walk.of(i, { add: (code, a, b, far) => far > 0 || gaps[code < at.length ? code : 0].push(y, a, b) });
  }
  const tiny = tinyOf(some, axis, lives.first, lives.last);
  for (let phase = 1; phase < at.length; phase++) longest(tiny, some.who, at[phase - 1], at[phase], phase);

  const xs = new Int16Array(some.who.length);
  for (let kind = 0; kind < at.length; kind++) {
    for (let k = 0; k < gaps[kind].length; k += 3) counts.add(gaps[kind][k], gaps[kind][k + 1], gaps[kind][k + 2]);
    if (kind === 0) places(xs, some, axis, at[0]);
    else {
      tally(counts, xs, some, axis, at[kind - 1], at[kind], long[kind - 1]);
      for (let t = 0; t < tiny.lines.length; t++) if (tiny.code[t] === kind) counts.add(tiny.lines[t], tiny.xs[t], tiny.xs[t] + 1);
    }
    counts.resolve(codes, kind === 0 ? GAP : kind);
  }
  farOnes(codes, lines, axis, scene);
  if (step === 1) return codes;
  // Those that were not counted show where nobody else is.
  stragglers(codes, lines, axis, scene, walk, step);
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
interface Tiny {
  lines: Int16Array;
  xs: Int16Array;
  places: Uint32Array;
  length: Int32Array;
  code: Int32Array;
}

/** Takes those that live within a pixel out of those that are counted phase by phase. */
function tinyOf({ who, lines }: Some, axis: Axis, first: Int32Array, last: Int32Array): Tiny {
  const { zeros, origin, unit, from, scale, width } = axis;
  const [own, xs, places] = [new Int16Array(who.length), new Int16Array(who.length), new Uint32Array(who.length)];
  let n = 0;
  for (let k = 0; k < who.length; k++) {
    if (lines[k] < 0) continue;
    const i = who[k];
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    const x = Math.floor((origin + first[i] * unit - zero) * scale);
    if (x !== Math.floor((origin + last[i] * unit - zero) * scale)) continue;
    if (x >= 0 && x < width) [own[n], xs[n], places[n++]] = [lines[k], x, k];
    lines[k] = -1;
  }
  return {
    lines: own.subarray(0, n),
    xs: xs.subarray(0, n),
    places: places.subarray(0, n),
    length: new Int32Array(n).fill(-1),
    code: new Int32Array(n),
  };
}

function longest({ places, length, code }: Tiny, who: Uint32Array, begins: Int32Array, ends: Int32Array, phase: number): void {
  for (let t = 0; t < places.length; t++) {
    const i = who[places[t]];
    if (begins[i] === NONE || ends[i] === NONE || ends[i] - begins[i] <= length[t]) continue;
    length[t] = ends[i] - begins[i];
    code[t] = phase;
  }
}

// The loops below are functions of their own, for the compiler makes more of them.

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

/** How many of one kind there are in each pixel, and of the kinds before the most. */
class Counts {
  /** Where counts change, and the pixels of each row in which they do. */
  readonly change: Int16Array;
  readonly left: Int16Array;
  readonly right: Int16Array;
  private readonly most: Int16Array;

  // Of a row of pixels at most some hundred entities are counted.
  constructor(
    private readonly width: number,
    height: number,
  ) {
    this.change = new Int16Array((width + 1) * height);
    this.most = new Int16Array(width * height);
    this.left = new Int16Array(height).fill(width);
    this.right = new Int16Array(height);
  }

  /** Counts one over the pixels a..b of a row. */
  add(y: number, a: number, b: number): void {
    if (a >= b) return;
    const row = y * (this.width + 1);
    this.change[row + a]++;
    this.change[row + b]--;
    if (a < this.left[y]) this.left[y] = a;
    if (b > this.right[y]) this.right[y] = b;
  }

  /** A kind has been counted: it wins where more are of it than of any before. The changes are forgotten. */
  resolve(codes: Uint8Array, code: number): void {
    const { change, most, left, right, width } = this;
    for (let y = 0; y < left.length; y++) {
      const [from, to] = [left[y], right[y]];
      if (from >= to) continue;
      const row = y * (width + 1);
      for (let k = row + from, pixel = y * width + from, end = row + to, n = 0; k < end; k++, pixel++) {
        n += change[k];
        if (n > most[pixel]) {
          most[pixel] = n;
          codes[pixel] = code;
        }
        change[k] = 0;
      }
      change[row + to] = 0;
      left[y] = width;
      right[y] = 0;
    }
  }
}

/** Draws those entities that were not counted where the background is still seen. */
function stragglers(codes: Uint8Array, lines: Int16Array, axis: Axis, { lives }: Crowd, walk: Walk, step: number): void {
  const { zeros, origin, unit, from, scale, width } = axis;
  const { first, last } = lives;
  const stride = width + 1;
  // How much background was left of each pixel of a row; less becomes of it.
  const empty = new Int16Array((codes.length / width) * stride);
  for (let line = 0, pixel = 0; pixel < codes.length; line += stride) {
    for (let k = line, end = line + width, n = 0; k < end; k++, pixel++) {
      if (codes[pixel] === BACKGROUND) n++;
      empty[k + 1] = n;
    }
  }
  const filler = new Filler(codes);
  for (let i = 0; i < lines.length; i++) {
    const y = lines[i];
    if (y < 0) continue;
    const zero = zeros ? from + (origin + zeros[i] * unit) : from;
    let a = Math.floor((origin + first[i] * unit - zero) * scale);
    let b = Math.floor((origin + last[i] * unit - zero) * scale);
    const isTiny = a === b;
    if (isTiny) b++;
    if (a < 0) a = 0;
    if (b > width) b = width;
    if (a >= b || empty[y * stride + b] === empty[y * stride + a]) continue;
    if (placeOf(i, step) >= 0) continue;
    const row = y * width;
    if (isTiny || b - a > FEW_PIXELS) {
      let some = false;
      for (let pixel = row + a; pixel < row + b; pixel++) {
        if (codes[pixel] !== BACKGROUND) continue;
        codes[pixel] = CLAIMED;
        some = true;
      }
      if (some) {
        walk.of(i, filler.of(row));
        // Somebody of whom one point was seen has no life yet.
        filler.rest(row + a, row + b, isTiny ? BACKGROUND : GAP);
      }
      continue;
    }
    for (let x = a; x < b; x++) {
      if (codes[row + x] === BACKGROUND) codes[row + x] = phaseAt(lives, i, ((x + 1) / scale + zero - origin) / unit);
    }
  }
}

/** The phase in which an entity passes a number that lies within its life; `GAP` where that is not known. */
function phaseAt({ at }: Lives, entity: number, number: number): number {
  let [low, high] = [0, at.length - 1];
  while (low < high && at[low][entity] === NONE) low++;
  while (low < high && at[high][entity] === NONE) high--;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const n = at[middle][entity];
    if (n === NONE) return GAP;
    if (n < number) low = middle;
    else high = middle;
  }
  return high;
}

/** Gives those pixels of an entity to its phases that were claimed for it. */
class Filler implements Taker {
  private row = 0;

  constructor(private readonly codes: Uint8Array) {}

  of(row: number): this {
    this.row = row;
    return this;
  }

  add(code: number, a: number, b: number): void {
    for (let pixel = this.row + a; pixel < this.row + b; pixel++) if (this.codes[pixel] === CLAIMED) this.codes[pixel] = code === SKEW ? GAP : code;
  }

  rest(from: number, to: number, code: number): void {
    for (let pixel = from; pixel < to; pixel++) if (this.codes[pixel] === CLAIMED) this.codes[pixel] = code;
  }
}
