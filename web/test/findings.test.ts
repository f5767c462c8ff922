import { expect, test } from 'vitest';
import { evidence } from '../src/data/evidence';
import { TimeAxis } from '../src/state/axis.svelte';

test('numbers of a finding are read with their units', () => {
  expect(evidence({ level: 20, waiting_max: 1096, slope_per_s: 36.5123, usual_latency_s: 0.00524 })).toEqual([
    'level 20',
    'waiting max 1,096',
    'slope per second 36.5',
    'usual latency 0.00524 s',
  ]);
});

test('a mark is on the chart that it names, and on no other', () => {
  const mark = (number: number, chart: string, name: string) => ({ number, chart, name, from_s: 1, to_s: 2 });
  const axis = new TimeAxis([0, 10], [], [mark(1, 'rate', 'users'), mark(2, 'latency', 'users'), mark(3, 'rate', 'probe')]);
  expect(axis.marksOn('rate', 'users').map(({ number }) => number)).toEqual([1]);
  expect(axis.marksOn('loop', 'users')).toEqual([]);
});
