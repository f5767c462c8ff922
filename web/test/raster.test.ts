import { describe, expect, it } from 'vitest';
import { BACKGROUND, GAP, paint, rasterise, rowsAt, SKEW, type Scene } from '../src/chart/raster';
import type { Lives } from '../src/data/lives';
import { crowd } from '../src/chart/crowd';
import { order } from '../src/data/order';
import { done } from '../src/data/stats';
import { survey } from '../src/data/survey';
import { everyone, livesOf } from './lives';
import { dice } from './packed';

function scene(lives: Lives, change: Partial<Scene> = {}): Scene {
  return {
    lives,
    order: everyone(lives),
    rows: [0, lives.count],
    align: 'run',
    span: [0, 10],
    width: 10,
    height: lives.count,
    shown: lives.points.map(() => true),
    long: lives.points.map(() => Infinity),
    ...change,
  };
}
const lines = (codes: Uint8Array, width: number) =>
  Array.from({ length: codes.length / width }, (_, y) => [...codes.subarray(y * width, (y + 1) * width)]);

describe('a row for each entity', () => {
  it('shows each phase from its start to its end', () => {
    const lives = livesOf([
      [1, 3, 6],
      [0, 5, 10],
    ]);
    expect(lines(rasterise(scene(lives)), 10)).toEqual([
      [0, 1, 1, 2, 2, 2, 0, 0, 0, 0],
      [1, 1, 1, 1, 1, 2, 2, 2, 2, 2],
    ]);
  });

  it('shows a missing point as a gap, and an interval that runs backwards as skew', () => {
    const lives = livesOf([
      [1, null, 4, 6],
      [2, 6, 4, 9],
    ]);
    expect(lines(rasterise(scene(lives)), 10)).toEqual([
      [0, GAP, GAP, GAP, 3, 3, 0, 0, 0, 0],
      [0, 0, 1, 1, SKEW, SKEW, 3, 3, 3, 0],
    ]);
  });

  it('shows a life shorter than a pixel', () => {
    expect(lines(rasterise(scene(livesOf([[4.1, 4.2, 4.6]]))), 10)).toEqual([[0, 0, 0, 0, 2, 0, 0, 0, 0, 0]]);
  });

  it('aligns, and leaves out who lacks the point', () => {
    const lives = livesOf([
      [5, 7],
      [8, 9],
      [null, 3],
    ]);
    expect(lines(rasterise(scene(lives, { align: 0 })), 10)).toEqual([
      [1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
      [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      Array(10).fill(0),
    ]);
  });

  it('cuts at the edges, zooms rows, repeats tall ones, and hides phases', () => {
    const lives = livesOf([
      [0, 1],
      [-5, 25],
    ]);
    const zoomed = rasterise(scene(lives, { rows: [1, 2], height: 3, width: 4 }));
    expect(lines(zoomed, 4)).toEqual([Array(4).fill(1), Array(4).fill(1), Array(4).fill(1)]);
    expect([...rasterise(scene(lives, { shown: [false] }))]).toEqual(Array(20).fill(BACKGROUND));
  });
});

describe('many entities for each row of pixels', () => {
  /** Entities that take 1 s, but for those in `planted`. */
  function crowd(n: number, planted: Record<number, number[]>): Lives {
    const random = dice(5);
    return livesOf(
      Array.from({ length: n }, (_, i) => {
        const start = (i / n) * 4;
        return planted[i] ?? [start, start + 0.2 + 0.1 * random(), start + 1];
      }),
    );
  }

  it('keeps one straggler among 100,000 visible', () => {
    const slow = 61_803;
    const start = (slow / 100_000) * 4;
    const lives = crowd(100_000, { [slow]: [start, start + 0.2, start + 7] });
    const [width, height] = [1000, 400];
    const codes = rasterise(scene(lives, { width, height }));
    const row = Math.floor((slow / 100_000) * height);
    const tail = codes.subarray(row * width + Math.ceil((start + 1.1) * 100), row * width + Math.floor((start + 7) * 100) - 1);
    expect(tail.every((code) => code === 2)).toBe(true);
    const above = codes.subarray((row - 2) * width + Math.ceil((start + 1.1) * 100), (row - 1) * width);
    expect(above.every((code) => code === BACKGROUND)).toBe(true);
  });

  it('keeps one slow phase visible under a crowd that is further on', () => {
    const slow = 50_000;
    const lives = crowd(100_000, { [slow]: [2, 2.9, 3] });
    const [width, height] = [1000, 400];
    const at = (codes: Uint8Array) => codes[Math.floor((slow / 100_000) * height) * width + 270];
    expect(at(rasterise(scene(lives, { width, height })))).toBe(2);
    expect(at(rasterise(scene(lives, { width, height, long: [0.6 / lives.unit, Infinity] })))).toBe(1);
  });

  it('shows the phase of most entities, and the longest of the far ones', () => {
    const lives = livesOf([
      [0, 9, 10],
      [0, 2, 10],
      [0, 2, 10],
    ]);
    const one = (long: number[]) => lines(rasterise(scene(lives, { height: 1, long: long.map((s) => s / lives.unit) })), 10)[0];
    expect(one([Infinity, Infinity])).toEqual([1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
    expect(one([5, Infinity])).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    expect(one([5, 7.5])).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
    expect(one([9.5, 7.5])).toEqual([1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
  });

  it('shows every entity in some row of pixels', () => {
    for (const [n, height] of [[7, 3], [1000, 440], [3, 10], [440, 440], [441, 440]]) {
      const seen = new Set<number>();
      for (let y = 0; y < height; y++) {
        const [from, to] = rowsAt(y, [0, n], height);
        for (let row = from; row < to; row++) seen.add(row);
      }
      expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
    }
  });
});

describe('a crowd', () => {
  /** Entities of five phases, some of which lack points, run backwards, are tiny or far longer than others. */
  function people(n: number): Lives {
    const random = dice(17);
    return livesOf(
      Array.from({ length: n }, (_, i) => {
        let t = (i / n) * 50;
        const pace = random() < 0.1 ? 1e-4 : 1;
        return Array.from({ length: 6 }, () => {
          t += pace * random() ** 3 * (random() < 0.003 ? 40 : random() < 0.01 ? -2 : 1);
          return random() < 0.02 ? null : t;
        });
      }),
      Array.from({ length: n }, () => `cell-${Math.floor(random() * 7)}`),
    );
  }
  const lives = people(12_000);
  const known = done(survey(lives));
  const views = (['start', 'total', 'group', { phase: 2 }] as const).flatMap((sort) =>
    ([['run', [0, 60]], ['start', [-1, 8]], [2, [-3, 5]], ['run', [20, 21]]] as const).flatMap(([align, span]) =>
      [[], [1], [0, 3]].map((hidden) => ({ sort, align, span, hidden })),
    ),
  );
  const of = ({ sort, align, span, hidden }: (typeof views)[number], rows: [number, number], height = 40) => ({
    ...scene(lives, { order: order(lives, sort), rows, align, span, width: 300, height, long: known.long }),
    shown: lives.points.slice(1).map((_, phase) => !hidden.includes(phase as never)),
    survey: known,
  });

  it.each(views)('is drawn as one by one: %o', (view) => {
    for (const rows of [[0, 12_000], [3000, 9001]] as [number, number][]) {
      const one = of(view, rows);
      expect(Buffer.compare(done(crowd(one, false)), rasterise(one))).toBe(0);
    }
  });

  it.each(views)('leaves nobody out when it is drawn quickly: %o', (view) => {
    const all = of(view, [0, 12_000]);
    // Where one entity in one is counted, that is all there is to count.
    expect(Buffer.compare(done(crowd(all, true)), rasterise(all))).toBe(0);
    // Of so few rows of pixels one entity in five is counted.
    const one = of(view, [0, 12_000], 9);
    const [quick, whole] = [done(crowd(one, true)), rasterise(one)];
    let other = 0;
    quick.forEach((code, pixel) => {
      if (code === whole[pixel]) return;
      other++;
      expect([code, whole[pixel]]).not.toContain(BACKGROUND);
      expect([code, whole[pixel]]).not.toContain(SKEW);
    });
    expect(other).toBeLessThan(quick.length / 3);
  });
});

it('one slow entity in a million is seen at once, wherever it is sorted to', () => {
  const [n, slow, width, height] = [1_000_000, 618_033, 1200, 440];
  const at = [0, 1, 2].map((point) => Int32Array.from({ length: n }, (_, i) => i * 400 + point * 1_000_000));
  // Its second phase takes 60 s instead of one.
  at[2][slow] += 59_000_000;
  const lives: Lives = { ...livesOf([]), points: ['a', 'b', 'c'], count: n, at, unit: 1e-6, first: at[0], last: at[2] };
  const known = done(survey(lives));
  for (const sort of ['start', 'end', { phase: 0 }] as const) {
    const rows = order(lives, sort);
    const one = { lives, order: rows, rows: [0, n] as const, align: 'run' as const, span: [0, 460] as const, width, height, shown: [true, true], long: known.long, survey: known };
    for (const quick of [true, false]) {
      const codes = done(crowd(one, quick));
      const y = Math.floor((rows.indexOf(slow) / n) * height);
      const x = (t: number) => Math.floor((t / 460) * width);
      const begin = (slow * 400) / 1e6 + 1;
      const line = codes.subarray(y * width, (y + 1) * width);
      expect(new Set(line.subarray(x(begin), x(begin + 60)))).toEqual(new Set([2]));
      expect(line[x(begin + 60)]).toBe(BACKGROUND);
    }
  }
});

it('nothing in, background out', () => {
  expect([...rasterise(scene(livesOf([]), { height: 2, width: 2 }))]).toEqual([0, 0, 0, 0]);
});

it('paints a colour for each code', () => {
  const pixels = new Uint32Array(3);
  paint(Uint8Array.of(2, 0, 2), Uint32Array.of(7, 8, 9), pixels);
  expect([...pixels]).toEqual([9, 7, 9]);
});
