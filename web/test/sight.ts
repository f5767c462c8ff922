/** Colours as people see them. */

import type { Rgb } from '../src/chart/palette';

/** What people see who lack one kind of cone; Machado, Oliveira and Fernandes 2009, in linear RGB. */
export const SIGHT: Record<string, number[][]> = {
  all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  'no red': [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
  'no green': [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
  'no blue': [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
};

const linear = (c: number) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);

/** Relative luminance as WCAG has it. */
export function luminance([r, g, b]: Rgb): number {
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** A colour in OKLab as seen with `sight`. */
export function oklab(colour: Rgb, sight: number[][]): number[] {
  const light = colour.map(linear);
  const [r, g, b] = sight.map((row) => Math.min(Math.max(row.reduce((sum, k, i) => sum + k * light[i], 0), 0), 1));
  const l = Math.cbrt(0.4122 * r + 0.5363 * g + 0.0514 * b);
  const m = Math.cbrt(0.2119 * r + 0.6807 * g + 0.1074 * b);
  const s = Math.cbrt(0.0883 * r + 0.2817 * g + 0.63 * b);
  return [0.2105 * l + 0.7936 * m - 0.0041 * s, 1.978 * l - 2.4286 * m + 0.4506 * s, 0.0259 * l + 0.7828 * m - 0.8087 * s];
}
