/** Entities that were not counted for a picture of many, where nobody else is seen. */

import { NONE, type Lives } from '../data/lives';
import type { Axis, Crowd } from './places';
import { BACKGROUND, GAP, SKEW, Walk, type Taker } from './raster';

/** In so few pixels the phases of an entity are looked for one by one. */
const FEW_PIXELS = 4;
/** Of a pixel in which there is somebody of whom nothing else is known yet. */
const CLAIMED = 253;

/** Draws those entities where the background is still seen. */
export function stragglers(codes: Uint8Array, lines: Int16Array, axis: Axis, scene: Crowd, isCounted: (entity: number) => boolean): void {
  const { lives } = scene;
  const walk = new Walk(scene);
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
    if (isCounted(i)) continue;
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
