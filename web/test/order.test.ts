import { describe, expect, it } from 'vitest';
import { shiftOf, startOf } from '../src/data/lives';
import { bands, order, sorted, type Sort } from '../src/data/order';
import { everyone, livesOf } from './lives';
import { dice } from './packed';

const lives = livesOf(
  [
    [3, 4, 9],
    [1, 8, 8.5],
    [2, 2.5, null],
    [null, null, null],
    [0, 1, 20],
  ],
  ['cell-10', 'cell-9', 'cell-10', 'cell-9', 'cell-2'],
);

describe('order', () => {
  it.each([
    ['start', [4, 1, 2, 0, 3]],
    ['end', [2, 1, 0, 4, 3]],
    ['total', [2, 0, 1, 4, 3]],
    ['group', [4, 1, 3, 2, 0]],
  ] as const)('by %s', (sort, expected) => {
    expect([...order(lives, sort)]).toEqual(expected);
  });

  it('by the length of a phase, entities without it last, then by start', () => {
    expect([...order(lives, { phase: 0 })]).toEqual([2, 4, 0, 1, 3]);
    expect([...order(lives, { phase: 1 })]).toEqual([1, 0, 4, 2, 3]);
  });

  it('holds every entity once', () => {
    for (const sort of ['start', 'end', 'total', 'group', { phase: 1 }] as const) {
      expect([...order(lives, sort)].sort()).toEqual([0, 1, 2, 3, 4]);
    }
  });
});

describe('of many entities', () => {
  const random = dice(9);
  const some = Array.from({ length: 3000 }, () => {
    // Few values, so that many are equal, and some that are missing or run backwards.
    const at = () => (random() < 0.1 ? null : Math.floor(random() * 40) / 4);
    return [at(), at(), at()];
  });
  const many = livesOf(some, some.map(() => `cell-${Math.floor(random() * 12)}`));

  it.each<Sort>(['start', 'end', 'total', 'group', { phase: 0 }, { phase: 1 }])('is the one that comparing them gives: %o', (sort) => {
    const rank = many.groups.map((name) => Number(name.slice(5)));
    const key = (i: number) => {
      const known = some[i].filter((t) => t !== null);
      if (sort === 'group') return rank[many.group[i]];
      if (sort === 'start') return known.length > 0 ? Math.min(...known) : NaN;
      if (sort === 'end') return known.length > 0 ? Math.max(...known) : NaN;
      if (sort === 'total') return known.length > 0 ? Math.max(...known) - Math.min(...known) : NaN;
      const [from, to] = [some[i][sort.phase], some[i][sort.phase + 1]];
      return from === null || to === null ? NaN : to - from;
    };
    const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : a > b ? 1 : Number(Number.isNaN(a)) - Number(Number.isNaN(b)));
    const keys = some.map((_, i) => key(i));
    const starts = some.map((_, i) => startOf(many, i));
    const expected = some.map((_, i) => i).sort((a, b) => compare(keys[a], keys[b]) || compare(starts[a], starts[b]) || a - b);
    expect([...order(many, sort)]).toEqual(expected);
  });

  it('is that of a part, too', () => {
    const part = everyone(many).filter((i) => i % 3 === 1);
    expect([...sorted(many, part.slice(), 'start')]).toEqual([...order(many, 'start')].filter((i) => i % 3 === 1));
  });
});

it('aligns on the run, the own start, or a point', () => {
  const shifts = (align: 'run' | 'start' | number) => [0, 1, 2, 3, 4].map((i) => shiftOf(lives, i, align));
  expect(shifts('run')).toEqual([0, 0, 0, 0, 0]);
  expect(shifts('start')).toEqual([3, 1, 2, NaN, 0]);
  expect(shifts(2)).toEqual([9, 8.5, NaN, NaN, 20]);
});

it('rows of each group, and of those without one, from the top', () => {
  const found = bands(lives, order(lives, 'group'));
  expect(found.map(({ group, from, to }) => [lives.groups[group], from, to])).toEqual([
    ['cell-2', 0, 1],
    ['cell-9', 1, 3],
    ['cell-10', 3, 5],
  ]);
});
