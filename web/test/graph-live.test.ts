import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Stats, Topology } from '../src/graph/data/shapes';
import { Live } from '../src/graph/state/live.svelte';

const topology: Topology = { name: 'g', seed: 1, revision: 1, entry: null, services: [], edges: [], instances: [], deployment: null };
const stats = (at_unix_ms: number): Stats => ({ at_unix_ms, seconds: 5, revision: 1, services: [], edges: [] });

let asked: string[] = [];
let clock: () => number;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  let now = 1000;
  clock = () => (now += 1000);
  vi.stubGlobal('document', Object.assign(new EventTarget(), { hidden: false }));
  vi.stubGlobal('fetch', async (path: string) => {
    asked.push(path);
    const body = JSON.stringify(path === '/topology' ? topology : stats(clock()));
    return { ok: true, status: 200, text: async () => body };
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('figures of another stretch are asked for once while the picture stands still', async () => {
  const live = new Live();
  const stop = live.start();
  await vi.advanceTimersByTimeAsync(0);
  live.toggle();
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked).toEqual(['/stats?seconds=5', '/topology']);
  live.setSeconds(60);
  await vi.advanceTimersByTimeAsync(5000);
  expect(asked.slice(2)).toEqual(['/stats?seconds=60']);
  stop();
});

it('a clock that was put back leaves nothing in the future', async () => {
  const times = [5000, 6000, 7000, 5500, 6500];
  clock = () => times.shift() ?? 9000;
  const live = new Live();
  const stop = live.start();
  await vi.advanceTimersByTimeAsync(4500);
  stop();
  expect(times).toEqual([]);
  expect(live.history.map(({ at_ms }) => at_ms)).toEqual([5000, 5500, 6500]);
});
