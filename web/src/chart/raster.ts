/**
 * Draws many timelines into few pixels, in time that depends on pixels more than on
 * entities. Pure: numbers in, one code for each pixel out.
 *
 * Where several entities share a row of pixels, each pixel follows three rules:
 * 1. an entity always beats the background: one straggler among thousands shows;
 * 2. the phase in which most of them are wins;
 * 3. an interval far longer than its phase's usual ones beats rule 2; the longest wins.
 */

import { NONE, shiftOf, type Align, type Lives } from '../data/lives';

/** Codes of pixels; phase `p` has code `p + 1`. */
export const BACKGROUND = 0;
/** Between two seen points with a point between them that was not seen. */
export const GAP = 254;
/** An interval that ends before it starts. */
export const SKEW = 255;

export interface Scene {
  lives: Lives;
  /** Entities by row. */
  order: Uint32Array;
  /** Rows to show: from, and up to but not including. */
  rows: readonly [number, number];
  /** What is subtracted from an entity's times. */
  align: Align;
  /** Times at the left and the right edge. */
  span: readonly [number, number];
  width: number;
  height: number;
  /** For each phase: is it drawn? */
  shown: boolean[];
  /** For each phase: an interval longer than this always shows (rule 3), in the lives' unit. */
  long: number[];
}

/** The rows that the pixel row `y` shows: from, and up to but not including. */
export function rowsAt(y: number, [from, to]: readonly [number, number], height: number): [number, number] {
  const first = from + Math.floor((y * (to - from)) / height);
  return [first, Math.max(first + 1, from + Math.floor(((y + 1) * (to - from)) / height))];
}

/** One code for each pixel, row by row from the top. */
export function rasterise(scene: Scene): Uint8Array {
  const { rows, width, height, lives, order } = scene;
  const codes = new Uint8Array(width * height);
  if (rows[1] <= rows[0] || width === 0) return codes;
  const tally = new Tally(lives.points.length, width);
  const drawing = new Walk(scene);
  let drawn: [number, number] = [-1, -1];
  for (let y = 0; y < height; y++) {
    const wanted = rowsAt(y, rows, height);
    const line = codes.subarray(y * width, (y + 1) * width);
    if (wanted[0] === drawn[0] && wanted[1] === drawn[1]) {
      codes.copyWithin(y * width, (y - 1) * width, y * width);
      continue;
    }
    drawn = wanted;
    // Beyond the last one there is nobody.
    for (let row = wanted[0], end = Math.min(wanted[1], order.length); row < end; row++) drawing.of(order[row], tally);
    tally.resolve(line);
  }
  return codes;
}

/** Takes an entity's intervals: a kind of pixel over the pixels a..b; of far ones how long they are, else 0. */
export interface IntervalSink {
  add(code: number, a: number, b: number, far: number): void;
}

/** Tells an entity's intervals, one after the other. */
export class Walk {
  constructor(private readonly scene: Scene) {}

  of(entity: number, sink: IntervalSink): void {
    const { lives, span, width, align, shown, long } = this.scene;
    const { at, origin, unit } = lives;
    const zero = span[0] + shiftOf(lives, entity, align);
    if (Number.isNaN(zero)) return;
    const scale = width / (span[1] - span[0]);
    let seen = -1;
    let from = 0;
    let fromX = 0;
    let painted = false;
    let longest = -1;
    let longestCode = 0;
    let place = 0;
    for (let point = 0; point < at.length; point++) {
      const to = at[point][entity];
      if (to === NONE) continue;
      const toX = Math.floor((origin + to * unit - zero) * scale);
      if (seen >= 0) {
        const length = to - from;
        const phase = point - 1;
        const whole = seen === phase;
        if (!whole || shown[phase]) {
          const code = length < 0 ? SKEW : whole ? phase + 1 : GAP;
          const a = length < 0 ? toX : fromX;
          const b = length < 0 ? fromX : toX;
          const far = code === SKEW || (whole && length > long[phase]);
          if (b > a) {
            painted = true;
            sink.add(code, Math.max(a, 0), Math.min(b, width), far ? Math.abs(length) : 0);
          }
          if (length > longest) [longest, longestCode, place] = [length, code, a];
        }
      }
      seen = point;
      from = to;
      fromX = toX;
    }
    // A life shorter than a pixel still is a life.
    if (!painted && longest >= 0) sink.add(longestCode, Math.max(place, 0), Math.min(place + 1, width), 0);
  }
}

/** How many entities are in which phase, for each pixel of one row. */
export class Tally implements IntervalSink {
  private readonly stride: number;
  /** For each kind of interval the change of its count at each pixel. */
  private readonly change: Int32Array;
  /** For each kind the pixels that it touches: from, and up to but not including. */
  private readonly from: Int32Array;
  private readonly to: Int32Array;
  /** For each pixel the highest count so far. */
  private readonly most: Int32Array;
  private far: { code: number; a: number; b: number; duration: number }[] = [];

  constructor(points: number, width: number) {
    this.stride = width + 1;
    // Kind 0 is the gap; the others are phases.
    this.change = new Int32Array(points * this.stride);
    this.from = new Int32Array(points).fill(width);
    this.to = new Int32Array(points);
    this.most = new Int32Array(width);
  }

  /** Counts an interval over the pixels a..b; a far one is kept for itself. */
  add(code: number, a: number, b: number, far: number): void {
    if (a >= b) return;
    if (far > 0) {
      this.far.push({ code, a, b, duration: far });
      return;
    }
    const kind = code === GAP ? 0 : code;
    this.change[kind * this.stride + a]++;
    this.change[kind * this.stride + b]--;
    if (a < this.from[kind]) this.from[kind] = a;
    if (b > this.to[kind]) this.to[kind] = b;
  }

  /** Writes the codes of the row and forgets it. */
  resolve(line: Uint8Array): void {
    const { stride, change, most } = this;
    most.fill(0);
    for (let kind = 0; kind < this.from.length; kind++) {
      const base = kind * stride;
      const [from, to] = [this.from[kind], this.to[kind]];
      if (from >= to) continue;
      const code = kind === 0 ? GAP : kind;
      let count = 0;
      for (let x = from; x < to; x++) {
        count += change[base + x];
        if (count > most[x]) {
          most[x] = count;
          line[x] = code;
        }
      }
      change.fill(0, base + from, base + to + 1);
      this.from[kind] = most.length;
      this.to[kind] = 0;
    }
    if (this.far.length === 0) return;
    this.far.sort((a, b) => a.duration - b.duration || a.code - b.code);
    for (const { code, a, b } of this.far) line.fill(code, a, b);
    this.far = [];
  }
}

/** Turns codes into pixels; `colours` has one 32-bit colour for each code. */
export function paint(codes: Uint8Array, colours: Uint32Array, pixels: Uint32Array): void {
  for (let i = 0; i < codes.length; i++) pixels[i] = colours[codes[i]];
}
