import { expect, it } from 'vitest';
import type { Lives } from '../src/data/lives';
import { LivesCache } from '../src/data/lives_cache';
import { extent } from '../src/state/extent';
import { MANY } from '../src/state/later';
import { livesOf } from './lives';

/** Entities that go on, the first from `begin` on and the last until `end`, in seconds of the run. */
function going(entities: number, begin: number, end: number): Lives {
  const rows = Array.from({ length: entities }, () => [begin, begin + 1]);
  return { ...livesOf([...rows, [begin, end]]), cache: new LivesCache() };
}

it('many that began long before the run stay where they are drawn while they grow', () => {
  const seconds = Array.from({ length: 60 }, (_, n) => n + 1);
  const spans = seconds.map((second) => extent(going(MANY, -1200, second), 'run'));
  expect(new Set(spans.map(String)).size).toBeLessThanOrEqual(2);
  spans.forEach(([from, to], n) => {
    expect(from).toBeLessThan(-1200);
    expect(to).toBeGreaterThan(seconds[n]);
    // A sixteenth of room, and a margin of a hundredth on each side.
    expect(to - from).toBeLessThanOrEqual((1200 + seconds[n]) * (17 / 16) * 1.02 + 1e-9);
  });
});

it('few have no room besides the margin', () => {
  expect(extent(going(10, -1200, 5), 'run')).toEqual([-1212.05, 17.05]);
});
