import { describe, expect, it } from 'vitest';
import { alignment, bands, order } from '../src/data/order';
import { livesOf } from './lives';

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

it('aligns on the run, the own start, or a point', () => {
  expect(alignment(lives, 'run')).toBeNull();
  expect([...alignment(lives, 'start')!]).toEqual([3, 1, 2, NaN, 0]);
  expect([...alignment(lives, 2)!]).toEqual([9, 8.5, NaN, NaN, 20]);
});

it('rows of each group, and of those without one, from the top', () => {
  const found = bands(lives, order(lives, 'group'));
  expect(found.map(({ group, from, to }) => [lives.groups[group], from, to])).toEqual([
    ['cell-2', 0, 1],
    ['cell-9', 1, 3],
    ['cell-10', 3, 5],
  ]);
});
