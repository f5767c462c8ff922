import { readFileSync } from 'node:fs';
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

/** What people see who lack one kind of cone; Machado, Oliveira and Fernandes 2009, in linear RGB. */
const SIGHT: Record<string, number[][]> = {
  all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  'no red': [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
  'no green': [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
  'no blue': [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
};

/** A colour in OKLab as seen with `sight`. */
function oklab(colour: Rgb, sight: number[][]): number[] {
  const linear = colour.map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = sight.map((row) => Math.min(Math.max(row.reduce((sum, k, i) => sum + k * linear[i], 0), 0), 1));
  const l = Math.cbrt(0.4122 * r + 0.5363 * g + 0.0514 * b);
  const m = Math.cbrt(0.2119 * r + 0.6807 * g + 0.1074 * b);
  const s = Math.cbrt(0.0883 * r + 0.2817 * g + 0.63 * b);
  return [0.2105 * l + 0.7936 * m - 0.0041 * s, 1.978 * l - 2.4286 * m + 0.4506 * s, 0.0259 * l + 0.7828 * m - 0.8087 * s];
}

describe('colours of lines', () => {
  const style = readFileSync(new URL('../src/page.css', import.meta.url), 'utf8');
  const [light, dark] = style.split("[data-theme='dark']").map((part) => {
    const found = [...part.matchAll(/--(?:line-\d|page): #(\w{2})(\w{2})(\w{2});/g)];
    return found.map(([, ...parts]) => parts.map((hex) => parseInt(hex, 16)) as Rgb);
  });

  it.each([['light', light], ['dark', dark]])('stand out from the page (%s)', (_, [page, ...lines]) => {
    expect(lines).toHaveLength(7);
    for (const line of lines) {
      const [a, b] = [luminance(line) + 0.05, luminance(page) + 0.05];
      expect(Math.max(a, b) / Math.min(a, b)).toBeGreaterThan(3);
    }
  });

  it.each(Object.keys(SIGHT))('differ from one another (%s)', (sight) => {
    for (const [, ...lines] of [light, dark]) {
      const seen = lines.map((line) => oklab(line, SIGHT[sight]));
      for (let i = 0; i < seen.length; i++) {
        for (let j = 0; j < i; j++) {
          expect(Math.hypot(...seen[i].map((c, k) => c - seen[j][k]))).toBeGreaterThan(0.11);
        }
      }
    }
  });
});
