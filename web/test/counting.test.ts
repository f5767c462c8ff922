import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Pieces } from '../src/data/stats';
import { Counting } from '../src/state/counting.svelte';
import { later } from '../src/state/later';

let clock = 0;
beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** Work of so many pieces, each of which takes 10 ms, and notes that it was done. */
function* work(name: string, pieces: number, notes: string[] = []): Pieces<string> {
  for (let n = 0; n < pieces; n++, yield) {
    clock += 10;
    notes.push(name);
  }
  return name;
}

it('work is done in pieces, and not to its end when it is given up', async () => {
  const [told, notes]: string[][] = [[], []];
  later(work('a', 5, notes), (value) => told.push(value));
  const stop = later(work('b', 5000, notes), (value) => told.push(value));
  expect(notes).toEqual([]);
  await vi.advanceTimersByTimeAsync(130);
  expect(notes).toContain('b');
  stop();
  const before = notes.filter((name) => name === 'b').length;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(['a']);
  expect(notes.filter((name) => name === 'b').length).toBe(before);
  expect(before).toBeLessThan(5000);
});

it('newer work about the same waits for the end of the older, and the newest is done last', async () => {
  const counting = new Counting<string>();
  const notes: string[] = [];
  counting.want('all', () => work('first', 3, notes));
  expect([counting.value, counting.stale]).toEqual([null, true]);
  counting.want('all', () => work('second', 3, notes));
  counting.want('all', () => work('third', 3, notes));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(new Set(notes)).toEqual(new Set(['first', 'third']));
  expect([counting.value, counting.stale]).toEqual(['third', false]);
  counting.want('all', () => work('fourth', 3));
  expect([counting.value, counting.stale]).toEqual(['third', false]);
});

it('work about something else takes the place of the older, whose value is told to be old', async () => {
  const counting = new Counting<string>();
  const notes: string[] = [];
  counting.want('all', () => work('all', 3));
  await vi.advanceTimersByTimeAsync(10_000);
  counting.want('zoomed', () => work('zoomed', 3, notes));
  expect([counting.value, counting.stale]).toEqual(['all', true]);
  counting.want('further', () => work('further', 3));
  await vi.advanceTimersByTimeAsync(10_000);
  expect([counting.value, counting.stale, notes]).toEqual(['further', false, []]);
  counting.want('zoomed', () => work('zoomed', 3, notes));
  counting.cancel();
  await vi.advanceTimersByTimeAsync(10_000);
  expect([counting.value, notes]).toEqual(['further', []]);
});
