/** Lines of charts as SVG paths, in pixels. Pure functions. */

import type { Points } from '../data/decode';

/** Values that hold until the next; or single events; or joined by lines. */
export type Style = 'step' | 'dots' | 'line';

/**
 * The path of the points within `span`, and of one on either side, so that lines go on
 * to the edges. `x` and `y` place a time and a value. A value that is NaN breaks the line.
 */
export function linePath(
  { t, v }: Points,
  span: readonly [number, number],
  style: Style,
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  let path = '';
  let drawing = false;
  const first = Math.max(placeAfter(t, span[0]) - 1, 0);
  for (let i = first; i < t.length; i++) {
    if (Number.isNaN(v[i])) {
      // A value holds until it is gone.
      if (drawing && style === 'step') path += `H${pixel(x(t[i]))}`;
      drawing = false;
    } else {
      const [px, py] = [pixel(x(t[i])), pixel(y(v[i]))];
      if (style === 'dots') path += `M${px} ${py}h0`;
      else if (!drawing) path += `M${px} ${py}`;
      else path += style === 'step' ? `H${px}V${py}` : `L${px} ${py}`;
      drawing = true;
    }
    if (t[i] > span[1]) break;
  }
  return path;
}

/** The index of the first time after `at`; the number of times when there is none. */
export function placeAfter(t: Float64Array, at: number): number {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Far outside a picture is all the same; numbers too large would not be drawn at all. */
function pixel(value: number): number {
  return Math.round(10 * Math.min(Math.max(value, -1e4), 1e5)) / 10;
}
