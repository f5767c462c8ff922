import { describe, expect, it } from 'vitest';
import { completeness, concurrency, edges, histograms, logBounds, percentile, phaseStats, slowestGroups } from '../src/data/stats';
import { everyone, livesOf } from './lives';
import { dice } from './packed';

describe('percentile', () => {
  it('is the value at the nearest rank', () => {
    const ten = Float64Array.from({ length: 10 }, (_, i) => i + 1);
    expect([0, 0.05, 0.1, 0.11, 0.5, 0.9, 0.91, 1].map((q) => percentile(ten, q))).toEqual([1, 1, 1, 2, 5, 9, 10, 10]);
  });

  it('is no number for no values', () => {
    expect(percentile(new Float64Array(), 0.5)).toBeNaN();
  });
});

describe('phaseStats', () => {
  it('finds the worst entity and counts what is missing or runs backwards', () => {
    const lives = livesOf([
      [0, 2, 3],
      [0, 5, 4],
      [0, null, 9],
    ]);
    const [first, second] = phaseStats(lives, everyone(lives));
    expect(first).toMatchObject({ count: 2, negative: 0, p50: 2, max: 5, worst: 1 });
    expect(second).toMatchObject({ count: 2, negative: 1, p50: -1, max: 1, worst: 0 });
  });

  it('gives shares that add up to one', () => {
    const random = dice(3);
    const lives = livesOf(
      Array.from({ length: 200 }, () => {
        const start = random();
        const middle = start + random();
        return [start, middle, middle + 3 * random(), random() < 0.1 ? null : middle + 4 + random()];
      }),
    );
    const stats = phaseStats(lives, everyone(lives));
    const sum = (of: (s: (typeof stats)[0]) => number) => stats.reduce((total, s) => total + of(s), 0);
    expect(sum((s) => s.shareOfTime)).toBeCloseTo(1, 12);
    expect(sum((s) => s.shareOfVariance)).toBeCloseTo(1, 12);
  });

  it('gives all variance to the phase that varies', () => {
    const lives = livesOf([
      [0, 1, 2],
      [0, 1, 4],
      [0, 1, 9],
    ]);
    const stats = phaseStats(lives, everyone(lives));
    expect(stats[0].shareOfVariance).toBeCloseTo(0, 12);
    expect(stats[1].shareOfVariance).toBeCloseTo(1, 12);
    expect(stats[0].shareOfTime).toBeCloseTo(3 / 15, 12);
  });

  it('knows only the rows it is given', () => {
    const lives = livesOf([
      [0, 1],
      [0, 9],
    ]);
    expect(phaseStats(lives, Uint32Array.of(0))[0]).toMatchObject({ count: 1, max: 1, worst: 0 });
  });

  it('survives nothing at all', () => {
    const lives = livesOf([[null, null]]);
    expect(phaseStats(lives, everyone(lives))[0]).toMatchObject({ count: 0, negative: 0, worst: -1, concurrencyMax: 0 });
  });
});

describe('concurrency', () => {
  it('does not count who leaves at the moment another comes', () => {
    const lives = livesOf([
      [0, 1],
      [1, 2],
      [1.5, 3],
    ]);
    expect(phaseStats(lives, everyone(lives))[0].concurrencyMax).toBe(2);
  });

  it('finds a pool of 20 and its peak in every part of time', () => {
    const lives = livesOf(Array.from({ length: 400 }, (_, i) => [Math.floor(i / 20), Math.floor(i / 20) + 1]));
    expect([...concurrency(edges(lives, 0, everyone(lives)), [-1, 21], 22)]).toEqual([0, ...Array(20).fill(20), 0]);
  });

  it('agrees with counting one by one', () => {
    const random = dice(11);
    const rows = Array.from({ length: 300 }, () => {
      const from = random() * 10;
      return [from, from + random() ** 4 * 3];
    });
    const lives = livesOf(rows);
    const bins = concurrency(edges(lives, 0, everyone(lives)), [2, 8], 37);
    const at = (t: number) => rows.filter(([from, to]) => from <= t && t < to).length;
    bins.forEach((found, bin) => {
      const [from, to] = [2 + (6 / 37) * bin, 2 + (6 / 37) * (bin + 1)];
      const moments = [from, ...rows.map(([t]) => t).filter((t) => t >= from && t < to)];
      expect(found).toBe(Math.max(...moments.map(at)));
    });
  });
});

it('tells complete entities and the points that are missing', () => {
  const lives = livesOf([
    [1, 2, 3],
    [1, null, 3],
    [null, null, null],
  ]);
  expect(completeness(lives)).toEqual({ complete: 1, missing: [1, 2, 1] });
});

describe('histograms', () => {
  it('tells the first and the last fifth by start', () => {
    const lives = livesOf(Array.from({ length: 10 }, (_, i) => [i, i + (i < 2 ? 0.02 : i < 8 ? 0.2 : 5)]));
    const [{ first, middle, last, most, below, above }] = histograms(lives, everyone(lives), [-3, 1], 4);
    expect([[...first], [...middle], [...last], most]).toEqual([[0, 2, 0, 0], [0, 0, 6, 0], [0, 0, 0, 2], 6]);
    expect([below, above]).toEqual([0, 0]);
  });

  it('keeps zero and negative values, in the first bin', () => {
    const lives = livesOf([
      [0, 0],
      [0, -1],
    ]);
    const [{ middle, below, above }] = histograms(lives, everyone(lives), [-3, 1], 4);
    expect([[...middle], below, above]).toEqual([[2, 0, 0, 0], 2, 0]);
  });

  it('counts what is longer than the axis in the last bin', () => {
    const lives = livesOf([[0, 50]]);
    expect(histograms(lives, everyone(lives), [-3, 1], 4)[0]).toMatchObject({ most: 1, below: 0, above: 1 });
  });

  it('have an axis that holds the 1st to the 99.9th percentile and little more', () => {
    const lives = livesOf(Array.from({ length: 2000 }, (_, i) => [0, i < 3 ? 1e-6 : i > 1998 ? 1e4 : 0.01 + i / 2000]));
    const [from, to] = logBounds(lives, everyone(lives));
    expect(10 ** from).toBeGreaterThan(0.01);
    expect(10 ** from).toBeLessThan(0.03);
    expect(10 ** to).toBeGreaterThan(1);
    expect(10 ** to).toBeLessThan(1.2);
  });

  it('have room around a single value, and bounds without any', () => {
    const one = livesOf([[0, 1]]);
    const [from, to] = logBounds(one, everyone(one));
    expect(from).toBeLessThan(-0.2);
    expect(to).toBeGreaterThan(0.2);
    const none = livesOf([[null, null]]);
    expect(logBounds(none, everyone(none))).toEqual([-3, 0]);
  });
});

describe('slowest groups', () => {
  const lives = (sizes: number[]) =>
    livesOf(
      sizes.flatMap((size, group) => Array.from({ length: size }, () => [0, 1 + group, 9 - group])),
      sizes.flatMap((size, group) => Array<string>(size).fill(`cell-${group}`)),
    );

  it('differ from phase to phase', () => {
    const three = lives([5, 5, 5]);
    expect(slowestGroups(three, everyone(three))).toEqual([
      { group: 2, p50: 3 },
      { group: 0, p50: 8 },
    ]);
  });

  it('need at least two groups of five', () => {
    const small = lives([5, 4]);
    expect(slowestGroups(small, everyone(small))).toEqual([null, null]);
    const none = livesOf([[0, 1]]);
    expect(slowestGroups(none, everyone(none))).toEqual([null]);
  });
});
