import { describe, expect, it } from 'vitest';
import type { Lives } from '../src/data/lives';
import { concurrency, done, edges, lengths, numbersOf, place } from '../src/data/stats';
import { histograms as histogramsOf, logBounds as logBoundsOf, survey } from '../src/data/survey';
import { everyone, livesOf } from './lives';
import { dice } from './packed';

const phaseStats = (lives: Lives, rows: Uint32Array) => done(numbersOf(lives, rows)).phases;
const slowestGroups = (lives: Lives, rows: Uint32Array) => done(numbersOf(lives, rows)).groups;
const histograms = (...of: Parameters<typeof histogramsOf>) => done(histogramsOf(...of));
const logBounds = (...of: Parameters<typeof logBoundsOf>) => done(logBoundsOf(...of));

describe('percentile', () => {
  it('is the value at the nearest rank', () => {
    expect([0, 0.05, 0.1, 0.11, 0.5, 0.9, 0.91, 1].map((q) => place(10, q) + 1)).toEqual([1, 1, 1, 2, 5, 9, 10, 10]);
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
    expect(phaseStats(lives, everyone(lives))[0].p50).toBeNaN();
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

describe('survey', () => {
  it('tells complete entities, the points that are missing, and who has holes', () => {
    const lives = livesOf([
      [1, 2, 3],
      [1, null, 3],
      [null, null, null],
      [1, 2, null],
    ]);
    expect(done(survey(lives))).toMatchObject({ complete: 1, missing: [1, 2, 2], backwards: false, far: [], gaps: Uint32Array.of(1) });
  });

  it('agrees with looking at each', () => {
    const random = dice(23);
    const rows = Array.from({ length: 4000 }, () => {
      let t = random() * 10;
      return Array.from({ length: 5 }, () => {
        // Of the second half of them many are equal, as where clocks tell milliseconds.
        t += random() < 0.5 ? random() ** 6 : 0.25;
        if (random() < 0.002) t -= 0.5;
        return random() < 0.01 ? null : t;
      });
    });
    const lives = livesOf(rows);
    const found = done(survey(lives));
    const all = everyone(lives);
    const far = new Set<string>();
    let backwards = false;
    for (let phase = 0; phase < 4; phase++) {
      const { values, who } = lengths(lives, phase, all);
      const sorted = values.slice().sort();
      const long = 2 * sorted[place(sorted.length, 0.99)];
      expect(found.long[phase]).toBe(long);
      values.forEach((length, k) => {
        if (length > long || length < 0) far.add(`${who[k]} ${phase} ${phase + 1}`);
        if (length < 0) backwards = true;
      });
    }
    for (const entity of found.gaps) {
      const known = [0, 1, 2, 3, 4].filter((point) => rows[entity][point] !== null);
      known.slice(1).forEach((to, k) => {
        if (to > known[k] + 1 && lives.at[to][entity] < lives.at[known[k]][entity]) far.add(`${entity} ${known[k]} ${to}`);
      });
    }
    expect(new Set(found.far.map(({ entity, from, to }) => `${entity} ${from} ${to}`))).toEqual(far);
    expect(found.backwards).toBe(backwards);
    const lengthOf = ({ entity, from, to }: { entity: number; from: number; to: number }) => Math.abs(lives.at[to][entity] - lives.at[from][entity]);
    expect(found.far.every((one, k) => k === 0 || lengthOf(found.far[k - 1]) <= lengthOf(one))).toBe(true);
  });
});

it('the numbers of many agree with counting one by one', () => {
  const random = dice(31);
  const rows = Array.from({ length: 3000 }, (_, i) => {
    const start = i / 100;
    const middle = start + random() ** 3;
    return [start, random() < 0.05 ? null : middle, middle + random() - 0.05];
  });
  const groups = rows.map(() => `cell-${Math.floor(random() * 9)}`);
  const lives = livesOf(rows, groups);
  const some = everyone(lives).filter((i) => i % 5 !== 0);
  const { phases, groups: slowest, slowest: longest } = done(numbersOf(lives, some));
  phases.forEach((phase, k) => {
    const values = [...some].filter((i) => rows[i][k] !== null && rows[i][k + 1] !== null).map((i) => ({ i, length: lives.at[k + 1][i] - lives.at[k][i] }));
    const sorted = values.map(({ length }) => length).sort((a, b) => a - b);
    expect(phase.count).toBe(values.length);
    expect(phase.negative).toBe(sorted.filter((length) => length < 0).length);
    for (const [q, found] of [[0.5, phase.p50], [0.9, phase.p90], [0.99, phase.p99], [1, phase.max]]) {
      expect(found).toBe(sorted[Math.max(Math.ceil(q * sorted.length - 1e-9), 1) - 1] * lives.unit);
    }
    expect(phase.worst).toBe(values.find(({ length }) => length === sorted.at(-1))!.i);
    const medians = lives.groups.map((_, group) => {
      const own = values.filter(({ i }) => lives.group[i] === group).map(({ length }) => length).sort((a, b) => a - b);
      return own[Math.ceil(own.length / 2) - 1] * lives.unit;
    });
    expect(slowest[k]).toEqual({ group: medians.indexOf(Math.max(...medians)), p50: Math.max(...medians) });
  });
  const length = (i: number) => lives.last[i] - lives.first[i];
  expect(length(longest)).toBe(Math.max(...[...some].map(length)));
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
