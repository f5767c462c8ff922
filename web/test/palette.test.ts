import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { codeColours, oklch, phaseColours, type Rgb } from '../src/chart/palette';
import { BACKGROUND } from '../src/chart/raster';
import { luminance, oklab, SIGHT } from './sight';

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
