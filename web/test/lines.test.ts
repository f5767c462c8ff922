import { expect, it } from 'vitest';
import { linePath, placeAfter } from '../src/chart/lines';
import { linear, logarithmic, logarithmicAround } from '../src/chart/plane';

const points = (...all: [number, number][]) => ({ t: Float64Array.from(all, ([t]) => t), v: Float64Array.from(all, ([, v]) => v) });
const path = (style: 'step' | 'dots' | 'line', span: [number, number], ...all: [number, number][]) =>
  linePath(points(...all), span, style, (t) => 10 * t, (v) => 100 - v);

it('steps hold until the next value, lines go straight, dots stand alone', () => {
  const all: [number, number][] = [[0, 1], [1, 2], [2, 0]];
  expect(path('step', [0, 2], ...all)).toBe('M0 99H10V98H20V100');
  expect(path('line', [0, 2], ...all)).toBe('M0 99L10 98L20 100');
  expect(path('dots', [0, 2], ...all)).toBe('M0 99h0M10 98h0M20 100h0');
});

it('no value breaks a line; a step goes on until then', () => {
  expect(path('line', [0, 3], [0, 1], [1, NaN], [2, 1], [3, 1])).toBe('M0 99M20 99L30 99');
  expect(path('step', [0, 3], [0, 1], [1, NaN], [2, 1], [3, NaN])).toBe('M0 99H10M20 99H30');
});

it('only what is in sight is drawn, and a point on either side', () => {
  const all = Array.from({ length: 100 }, (_, i): [number, number] => [i, 0]);
  expect(path('line', [50.5, 51.5], ...all)).toBe('M500 100L510 100L520 100');
  expect(path('line', [200, 300], ...all)).toBe('M990 100');
  expect(path('line', [0, 1])).toBe('');
});

it('numbers far outside the picture stay numbers that can be drawn', () => {
  expect(linePath(points([0, 1e300]), [0, 1], 'line', (t) => t, (v) => -v)).toBe('M0 -10000');
});

it('finds the first time after a moment', () => {
  const t = Float64Array.of(1, 2, 2, 3);
  expect([0, 1, 2, 2.5, 3].map((at) => placeAfter(t, at))).toEqual([0, 1, 3, 3, 4]);
});

it('scales give parts of the way and back, and round ticks', () => {
  const even = linear(0, 200, 4);
  expect([even.part(50), even.value(0.25), even.ticks]).toEqual([0.25, 50, [0, 50, 100, 150, 200]]);
  const log = logarithmic(0.001, 10);
  expect(log.part(0.1)).toBeCloseTo(0.5);
  expect(log.value(0.75)).toBeCloseTo(1);
  expect(log.ticks).toHaveLength(5);
});

it('a logarithmic scale holds every value above 0, and there is always one', () => {
  const scale = logarithmicAround([0, -1, NaN, 0.002, 0.8]);
  expect(scale.part(0.002)).toBeGreaterThan(0);
  expect(scale.part(0.8)).toBeLessThan(1);
  for (const values of [[], [NaN, 0], [5], [5, 5]]) {
    const { part, ticks } = logarithmicAround(values);
    expect(Number.isFinite(part(5))).toBe(true);
    expect(ticks.length).toBeGreaterThan(0);
  }
});
