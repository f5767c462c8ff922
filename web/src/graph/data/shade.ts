/** Colours and widths of the drawing. Pure. */

import { css, oklch, type Theme } from '../../chart/palette';

/**
 * Colours of the steps of failures: from grey-blue to ever more orange and ever further from
 * the background, so that the order also shows without colour vision.
 */
export function errorColours(theme: Theme): string[] {
  const steps: [number, number, number][] =
    theme === 'light'
      ? [[0.72, 0.035, 250], [0.7, 0.15, 65], [0.56, 0.17, 45], [0.4, 0.15, 30]]
      : [[0.5, 0.035, 250], [0.62, 0.13, 55], [0.76, 0.16, 65], [0.92, 0.13, 95]];
  return steps.map((step) => css(oklch(...step)));
}

/** Width of an edge in pixels at scale 1, where `most` is the highest rate of all. */
export function edgeWidth(rate: number, most: number): number {
  if (rate <= 0 || most <= 0) return 1;
  // Three orders of magnitude below the highest is as thin as can be.
  const part = 1 + Math.log10(rate / most) / 3;
  return 1.25 + 4.75 * Math.min(Math.max(part, 0), 1);
}
