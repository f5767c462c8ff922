import { describe, expect, it } from 'vitest';
import { bytes, completePercent, cores, count, duration, logTicks, percent, reach, roomy, roundDuration, ticks, timeLabel, timeTickLabels, timeTicks } from '../src/chart/scales';

describe('duration', () => {
  it.each([
    [0, '0 s'],
    [8.4e-7, '0.84 µs'],
    [0.00084, '840 µs'],
    [0.0123, '12.3 ms'],
    [0.99949, '999 ms'],
    [0.9996, '1.00 s'],
    [1.268, '1.27 s'],
    [59.96, '60.0 s'],
    [125, '2 m 05 s'],
    [3661, '1 h 01 m'],
    [-0.0021, '−2.10 ms'],
    [NaN, '–'],
  ])('%d s is %s', (seconds, text) => expect(duration(seconds)).toBe(text));
});

it('numbers as people read them', () => {
  expect([0, 1023, 1024, 223_000_000, 8e12].map(bytes)).toEqual(['0 B', '1023 B', '1.0 KiB', '213 MiB', '7.3 TiB']);
  expect([0.123, -0.0001, -0.06, NaN].map(percent)).toEqual(['12.3 %', '0.0 %', '−6.0 %', '–']);
  expect([-5, -3, -1, 0, 3].map(roundDuration)).toEqual(['10 µs', '1 ms', '100 ms', '1 s', '1,000 s']);
  expect([Math.log10(0.02), Math.log10(5e-4)].map(roundDuration)).toEqual(['20 ms', '500 µs']);
  expect([-0, NaN, 4000].map(count)).toEqual(['0', '–', '4,000']);
});

it('what a process used before it began is a dash', () => {
  expect([cores(NaN), bytes(NaN), cores(1.266), cores(0)]).toEqual(['–', '–', '1.27', '0.00']);
});

it('an axis reaches from the least to the most, and always over 0', () => {
  const least = (...lines: number[][]) => reach(lines).map((value) => Number(value.toFixed(6)));
  expect(least([1, NaN, 5], [2])).toEqual([0, 5.2]);
  expect(least([-5, -3])).toEqual([-5.2, 0]);
  expect(least([-1], [1])).toEqual([-1.04, 1.04]);
  for (const nothing of [[], [[]], [[0]], [[NaN]]]) expect(least(...nothing)).toEqual([0, 1.04]);
});

it('labels stand beside each other, never over each other', () => {
  const nines = ['p0', 'p50', 'p90', 'p99'].map((text, i) => ({ text, part: [0, 0.043, 0.143, 0.286][i] }));
  const shown = (width: number) => roomy(nines, width).map(({ text }) => text);
  expect(shown(1000)).toEqual(['p0', 'p50', 'p90', 'p99']);
  expect(shown(300)).toEqual(['p0', 'p90', 'p99']);
  expect(shown(0)).toEqual(['p0']);
});

it('a share is not rounded up to all', () => {
  expect(completePercent(4000, 4000)).toBe('100 %');
  expect(completePercent(99_999, 100_000)).toBe('99.99 %');
  expect(completePercent(0, 0)).toBe('–');
});

it('logarithmic ticks are powers of ten, and 2 and 5 times these on a short axis', () => {
  expect(logTicks(-3.2, 0.5)).toEqual([-3, -2, -1, 0]);
  expect(logTicks(-1.1, -0.2).map(roundDuration)).toEqual(['100 ms', '200 ms', '500 ms']);
});

describe('ticks', () => {
  it('are round numbers within the bounds', () => {
    expect(ticks(0, 4000, 4)).toEqual([0, 1000, 2000, 3000, 4000]);
    expect(ticks(-3, 7, 5)).toEqual([-2, 0, 2, 4, 6]);
    expect(ticks(5, 5, 5)).toEqual([]);
  });

  it('of time follow the clock above a second', () => {
    expect(timeTicks(0, 300, 6)).toEqual([0, 60, 120, 180, 240, 300]);
    expect(timeTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
  });

  it('have labels with the decimals they need', () => {
    expect([0.2, 0.6000000000000001].map((t) => timeLabel(t, 0.2))).toEqual(['0.2 s', '0.6 s']);
    expect([0, 60, 150, 3661].map((t) => timeLabel(t, 30))).toEqual(['0 s', '60 s', '2:30', '1:01:01']);
    expect(timeLabel(-1, 0.5)).toBe('−1.0 s');
    expect(timeTickLabels([0, 0.4], 4).map(({ text }) => text)).toEqual(['0.0 s', '0.1 s', '0.2 s', '0.3 s', '0.4 s']);
    // Also where there is room for one alone.
    expect(timeTickLabels([12.25, 12.75], 1.5)).toEqual([{ text: '12.5 s', part: 0.5 }]);
    expect(timeTickLabels([0, 1], 0)).toEqual([]);
  });
});
