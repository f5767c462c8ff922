import { describe, expect, it } from 'vitest';
import { codeColours, oklch, phaseColours, type Rgb } from '../src/chart/palette';
import { BACKGROUND } from '../src/chart/raster';

/** Relative luminance as WCAG has it. */
function luminance([r, g, b]: Rgb): number {
  const linear = (c: number) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

describe('colours of phases', () => {
  it.each(['light', 'dark'] as const)('grow lighter from phase to phase (%s)', (theme) => {
    for (let count = 2; count <= 15; count++) {
      const bright = phaseColours(count, theme).map(luminance);
      for (let i = 1; i < count; i++) expect(bright[i]).toBeGreaterThan(bright[i - 1]);
    }
  });

  it('exist for one phase', () => expect(phaseColours(1, 'light')).toHaveLength(1));
});

it('knows white, black and a grey', () => {
  expect(oklch(1, 0, 0)).toEqual([255, 255, 255]);
  expect(oklch(0, 0, 0)).toEqual([0, 0, 0]);
  expect(oklch(0.5999, 0, 0)).toEqual([128, 128, 128]);
});

it('fades all phases but the lit one', () => {
  const phases: Rgb[] = [[10, 20, 30], [0, 0, 0]];
  const colours = codeColours(phases, 'light', 0);
  expect(colours[1]).toBe(0xff1e140a);
  expect(colours[2]).not.toBe(0xff000000);
  expect(colours[BACKGROUND]).toBe(0xffffffff);
});
