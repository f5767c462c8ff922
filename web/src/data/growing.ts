/** Timelines that grow: what came before, with what has changed since written into it. */

import { GrowingIds } from './ids';
import { endsOfAll, NONE, widen, type Lives } from './lives';
import { LivesCache } from './lives_cache';
import type { Grown } from './run';

/** Part of what there is that arrays have room for besides, so that hardly any growth moves them. */
const SPARE = 1 / 4;

/** What has become of lifecycles, with the bytes that have their numbers from `at` on. */
export interface Sent {
  grown: Grown[];
  bytes: ArrayBuffer;
  at: number;
}

/** All lifecycles of a run that goes on. */
export class Growing {
  private all: One[] = [];

  /** Takes what was sent since the last time. What was returned before shows the new numbers, too, and is of no use. */
  take({ grown, bytes, at }: Sent): Lives[] {
    if (grown.length < this.all.length) this.all = [];
    return grown.map((one, n) => {
      if (this.all[n]?.name !== one.name) this.all[n] = new One(one.name);
      return this.all[n].take(one, bytes, at + one.at);
    });
  }
}

class One {
  private points: string[] = [];
  private room = 0;
  private count = 0;
  /** With room for more entities than there are. */
  private at: Int32Array[] = [];
  private first = new Int32Array(0);
  private last = new Int32Array(0);
  private group = new Int32Array(0);
  private groups: string[] = [];
  /** The first and the last number of any; undefined: not known. */
  private ends: [number, number] | null | undefined;
  private readonly ids = new GrowingIds();
  private cache = new LivesCache();

  constructor(readonly name: string) {}

  take(grown: Grown, bytes: ArrayBuffer, begin: number): Lives {
    const { rows: n, entities, points, whole } = grown;
    let from = begin;
    // Numbers come in the order of bytes of every processor that a browser runs on.
    const column = () => new Int32Array(bytes, (from += 4 * n) - 4 * n, n);
    if (whole) this.begin(grown);
    else if (grown.groups_from > this.groups.length) throw new Error(`what is newer of ${this.name} has a gap`);
    const rows = whole ? upTo(n) : column();
    this.cache.leave(this.lives(grown), rows, entities);
    if (entities < this.count || rows.some((row) => row < this.count && this.isAtEnd(row))) this.ends = undefined;
    this.makeRoom(entities);
    const [first, last] = [new Int32Array(n).fill(NONE), new Int32Array(n).fill(NONE)];
    for (let point = 0; point < points.length; point++) {
      const own = column();
      put(this.at[point], rows, own);
      widen(own, first, last);
    }
    put(this.first, rows, first);
    put(this.last, rows, last);
    put(this.group, rows, column());
    const width = grown.form.reduce((sum, digits) => sum + digits, 0) / 2;
    this.ids.take(rows, grown.named, new Uint8Array(bytes, from, grown.named * width), grown.odd, grown.texts);
    this.groups = [...this.groups.slice(0, grown.groups_from), ...grown.groups];
    this.count = entities;
    this.ends = this.endsWith(first, last);
    const lives = this.lives(grown);
    this.cache.enter(lives, rows);
    return lives;
  }

  /** Has this entity the first or the last number of all? */
  private isAtEnd(row: number): boolean {
    return !!this.ends && (this.first[row] === this.ends[0] || this.last[row] === this.ends[1]);
  }

  /** The first and the last number of any, after some have these. */
  private endsWith(first: Int32Array, last: Int32Array): [number, number] | null {
    const [before, own] = [this.ends, endsOfAll({ first, last, count: first.length })];
    if (before === undefined) return endsOfAll({ first: this.first, last: this.last, count: this.count });
    if (!before || !own) return before ?? own;
    return [Math.min(before[0], own[0]), Math.max(before[1], own[1])];
  }

  private begin(grown: Grown): void {
    this.points = grown.points;
    this.count = 0;
    this.room = 0;
    this.at = this.points.map(() => new Int32Array(0));
    this.groups = [];
    this.ids.begin(grown.form);
    this.cache = new LivesCache();
    this.ends = undefined;
  }

  private makeRoom(entities: number): void {
    if (entities > this.room) {
      this.room = Math.ceil(entities * (1 + SPARE));
      const { room } = this;
      const larger = (numbers: Int32Array) => {
        const moved = new Int32Array(room);
        moved.set(numbers.subarray(0, this.count));
        return moved;
      };
      this.at = this.at.map(larger);
      [this.first, this.last, this.group] = [this.first, this.last, this.group].map(larger);
    }
    this.ids.grow(this.room, entities);
  }

  private lives({ origin_s, unit_s }: Grown): Lives {
    const now = (numbers: Int32Array) => numbers.subarray(0, this.count);
    return {
      name: this.name,
      points: this.points,
      count: this.count,
      at: this.at.map(now),
      origin: origin_s,
      unit: unit_s,
      first: now(this.first),
      last: now(this.last),
      ids: this.ids,
      groups: this.groups,
      group: now(this.group),
      digits: null,
      lines: () => null,
      cache: this.cache,
      ends: this.ends,
    };
  }
}

/** All rows. */
function upTo(n: number): Int32Array {
  const rows = new Int32Array(n);
  for (let row = 0; row < n; row++) rows[row] = row;
  return rows;
}

/** Writes the numbers of rows. */
function put(numbers: Int32Array, rows: Int32Array, own: Int32Array): void {
  for (let k = 0; k < rows.length; k++) numbers[rows[k]] = own[k];
}

/** The same entities, which stay as they are now. */
export function still(lives: Lives): Lives {
  if (!lives.cache) return lives;
  const [at, first, last, group] = [lives.at.map((numbers) => numbers.slice()), lives.first.slice(), lives.last.slice(), lives.group.slice()];
  return { ...lives, at, first, last, group, cache: undefined };
}
