/** Entities that were not counted for a picture of many, where nobody else is seen. */

import { NONE, type Lives } from '../data/lives';
import type { Axis } from './places';
import { BACKGROUND, GAP } from './raster';

/** Draws those entities where the background is still seen. */
export function stragglers(codes: Uint8Array, lines: Int16Array, axis: Axis, lives: Lives, isCounted: (entity: number) => boolean): void {
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
    for (let x = a; x < b; x++) {
      const pixel = y * width + x;
      if (codes[pixel] !== BACKGROUND) continue;
      codes[pixel] = isTiny ? longest(lives, i) : phaseAt(lives, i, ((x + 1) / scale + zero - origin) / unit);
    }
  }
}

/** The phase that is longest; nobody is seen of whom there is none. */
function longest({ at }: Lives, entity: number): number {
  let [longest, code, points] = [-1, BACKGROUND, 0];
  for (let point = 0; point < at.length; point++) {
    const end = at[point][entity];
    if (end === NONE) continue;
    points++;
    const begin = point > 0 ? at[point - 1][entity] : NONE;
    if (begin !== NONE && end - begin > longest) [longest, code] = [end - begin, point];
  }
  return code === BACKGROUND && points > 1 ? GAP : code;
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
