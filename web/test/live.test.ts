import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Growing } from '../src/data/growing';
import { textIds } from '../src/data/ids';
import { newer, send, type Newer } from '../src/data/newer';
import type { Run } from '../src/data/run';
import { TimeAxis } from '../src/state/axis.svelte';
import { LifeView } from '../src/state/life.svelte';
import { LiveRun } from '../src/state/live.svelte';
import { Grower } from './grower';
import { livesOf } from './lives';

const page = Object.assign(new EventTarget(), { hidden: false }) as unknown as Document;
const at = (now_s: number | null): Newer => ({
  run: { version: 1, underway: now_s === null ? null : { now_s, doing: 'hold', may: [], rates: [] } } as Run,
  blob: new Uint8Array([now_s ?? 255]),
  sent: null,
  tag: `"${now_s}"`,
  read_ms: 0,
});

const nobody = async (): Promise<void> => {
  throw new Error('nobody is there');
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('shows what is newer, asks by the tag of what it has, and asks no more after the end', async () => {
  const answers = [at(1), null, at(2), at(null)];
  const ask = vi.fn(async (_tag: string | null) => answers.shift()!);
  const live = new LiveRun(at(0).run, at(0).blob, ask, nobody);
  live.start(page);
  await vi.advanceTimersByTimeAsync(0);
  expect(live.run.underway?.now_s).toBe(1);
  expect(live.over).toBe(false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ask.mock.calls.map(([tag]) => tag)).toEqual([null, '"1"', '"1"', '"2"']);
  expect(live.over).toBe(true);
  expect([...live.blob]).toEqual([255]);
});

it('says when nobody answers, keeps what it shows, and goes on when it is answered again', async () => {
  const ask = vi.fn(async (): Promise<Newer | null> => at(3));
  ask.mockRejectedValueOnce(new Error('gone'));
  const live = new LiveRun(at(0).run, at(0).blob, ask, nobody);
  const stop = live.start(page);
  await vi.advanceTimersByTimeAsync(0);
  expect([live.error, live.run.underway?.now_s]).toEqual(['gone', 0]);
  await vi.advanceTimersByTimeAsync(1000);
  expect([live.error, live.run.underway?.now_s]).toEqual([null, 3]);
  stop();
});

it('stands still while the reader wants it, and then shows the newest, also the end', async () => {
  const answers = [at(1), at(2), at(null)];
  const ask = vi.fn(async (_tag: string | null) => answers.shift()!);
  const live = new LiveRun(at(0).run, at(0).blob, ask, nobody);
  live.toggle();
  live.start(page);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(live.run.underway?.now_s).toBe(0);
  // What comes must follow what is shown, whatever came meanwhile.
  expect(ask.mock.calls.map(([tag]) => tag)).toEqual([null, null, null]);
  live.toggle();
  expect(live.over).toBe(true);
});

it('writes what changed into what it has, and asks for all of it when it cannot', async () => {
  const grower = new Grower(2);
  grower.moment = 1;
  grower.add('00000001', 'cell-1', [1, -1]);
  const first = { ...at(1), sent: grower.since(0) };
  grower.moment = 2;
  grower.change(0, [1, 5]);
  const second = { ...at(2), sent: grower.since(1) };
  // An answer that follows another one than it has: a group in between is missing.
  grower.moment = 3;
  grower.add('00000002', 'cell-2', [3, -1]);
  grower.moment = 4;
  grower.add('00000003', 'cell-3', [4, -1]);
  const gap = { ...at(3), sent: grower.since(3) };
  const answers: Newer[] = [first, second, gap, { ...at(4), sent: grower.since(0) }, at(null)];
  const ask = vi.fn(async (_tag: string | null) => answers.shift()!);
  const live = new LiveRun(at(0).run, at(0).blob, ask, nobody);
  const seen: unknown[] = [];
  live.start(page);
  for (let n = 0; n < 4; n++) {
    await vi.advanceTimersByTimeAsync(n === 0 ? 0 : n < 3 ? 100 : 200);
    seen.push([live.error, live.lives[0].at.map((numbers) => [...numbers])]);
  }
  const changed = [[1], [5]];
  expect(seen).toEqual([
    [null, [[1], [-1]]],
    [null, changed],
    ['what is newer of task has a gap', changed],
    [null, [[1, 3, 4], [5, -1, -1]]],
  ]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ask.mock.calls.map(([tag]) => tag)).toEqual([null, '"1"', '"2"', null, '"4"']);
});

it('an entity stays selected when it is at another place', () => {
  const axis = new TimeAxis([0, 2]);
  const grower = new Grower(2);
  const growing = new Growing();
  grower.moment = 1;
  for (const id of ['00000001', '00000002', '00000003']) grower.add(id, null, [1, 2]);
  const before = new LifeView(growing.take(grower.since(0))[0], axis);
  before.selectId('00000003');
  grower.moment = 2;
  grower.remove(0);
  const after = new LifeView(growing.take(grower.since(1))[0], axis).continues(before);
  expect([before.selected, after.selected]).toEqual([2, 0]);
  grower.moment = 3;
  grower.remove(0);
  expect(new LifeView(growing.take(grower.since(2))[0], axis).continues(after).selected).toBeNull();
});

it('asks the server that the page came from, with the token and the tag', async () => {
  const asked = vi.fn(async () => new Response(null, { status: 304 }));
  vi.stubGlobal('fetch', asked);
  expect(await newer('"7"', '?token=abc')).toBeNull();
  expect(asked).toHaveBeenCalledWith('/data?token=abc', expect.objectContaining({ headers: { 'if-none-match': '"7"' } }));
  vi.stubGlobal('fetch', async () => new Response('the token is wrong\n', { status: 403 }));
  await expect(newer(null, '')).rejects.toThrow('the token is wrong');
  vi.stubGlobal('fetch', async () => new Response('\x0f\0\0\0\0\0\0\0\0\0\0\0{"version": 2 }'));
  await expect(newer(null, '')).rejects.toThrow('data of version 2, not 1');
});

it('has done what the reader asks for, and says why when it is not', async () => {
  const answers = [new Response(null, { status: 204 }), new Response('not now\n', { status: 409 })];
  const fetched = vi.fn(async (_url: string, _options: RequestInit) => answers.shift()!);
  vi.stubGlobal('fetch', fetched);
  const live = new LiveRun(
    at(0).run,
    at(0).blob,
    async () => null,
    (act, body) => send(act, body, '?token=x'),
  );
  expect(await live.act('mark', { note: 'colder' })).toBe(true);
  expect(live.refused).toBe(null);
  expect(await live.act('stop', {})).toBe(false);
  expect(live.refused).toBe('not now');
  expect(fetched.mock.calls.map(([url, { method, body }]) => [url, method, body])).toEqual([
    ['/mark?token=x', 'POST', '{"note":"colder"}'],
    ['/stop?token=x', 'POST', '{}'],
  ]);
});

it('keeps how a lifecycle is shown when more of it is known', () => {
  const axis = new TimeAxis([0, 2]);
  const before = new LifeView(livesOf([[0, 1], [1, 2]]), axis);
  before.setSort('end');
  before.setAlign('start');
  before.select(1);
  axis.zoom(0.5, 1.5);
  axis.become([0, 9], [{ start_s: 3, end_s: null }], [], []);
  // One that is known later began before the others.
  const lives = { ...livesOf([[-1, 3], [0, 1], [1, 2]]), ids: textIds(['id-9', 'id-0', 'id-1']) };
  const after = new LifeView(lives, axis).continues(before);
  expect([after.sort, after.align, after.selected]).toEqual(['end', 'start', 2]);
  expect(axis.span).toEqual([0.5, 1.5]);
  axis.reset();
  expect(axis.span).toEqual([0, 9]);
  expect(axis.bandsWithin([0, 9])).toEqual([[1 / 3, 1]]);
});
