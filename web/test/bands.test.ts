import { expect, test } from 'vitest';
import { TimeAxis } from '../src/state/axis.svelte';

const band = (start_s: number, end_s: number | null) => ({ start_s, end_s });

test('a band is the part of the stretch that it covers, and one without an end goes on', () => {
  const axis = new TimeAxis([0, 100], [band(60, null), band(10, 20)]);
  expect(axis.bandsWithin([0, 100])).toEqual([
    [0.1, 0.2],
    [0.6, 1],
  ]);
  expect(axis.bandsWithin([15, 25])).toEqual([[0, 0.5]]);
  expect(axis.bandsWithin([30, 50])).toEqual([]);
});

test('bands that nobody could tell apart are one, so that a chart has a bounded number of them', () => {
  const many = Array.from({ length: 50_000 }, (_, i) => band(i * 2, i * 2 + 1));
  const axis = new TimeAxis([0, 100_000], many);
  expect(axis.bandsWithin(axis.full)).toEqual([[0, 99_999 / 100_000]]);
  expect(axis.bandsWithin([0, 100]).length).toBe(50);
  const overlapping = new TimeAxis([0, 10], [band(1, 9), band(2, 3)]);
  expect(overlapping.bandsWithin([0, 10])).toEqual([[0.1, 0.9]]);
});
