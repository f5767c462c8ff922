/** The timelines of one kind of entity, in the whole numbers in which they came. */

import { column, NONE, text } from './decode';
import { packedIds, type Ids } from './ids';
import type { LivesCache } from './lives_cache';
import type { LinesOf, Timelines } from './run';

/** The number of a point that was not seen. */
export { NONE };

export interface Lives {
  name: string;
  points: string[];
  /** How many entities. */
  count: number;
  /** For each point the number at which each entity passed it, `NONE` where it was not seen. */
  at: Int32Array[];
  /** Number `n` is `origin + n × unit` seconds after the start of the run. */
  origin: number;
  unit: number;
  /** First and last number of each entity; `NONE`: none. */
  first: Int32Array;
  last: Int32Array;
  ids: Ids;
  groups: string[];
  /** For each entity the index of its group; -1: none. */
  group: Int32Array;
  /** Bits that the lengths of phases keep; null: they are whole. */
  digits: number | null;
  /** The log lines of some of them; unpacked when they are asked for. */
  lines: () => LinesOf | null;
  /** Of entities that grow, what is known of them. */
  cache?: LivesCache;
  /** Of them, too, the first and the last number of any; null: there is none. */
  ends?: [number, number] | null;
}

/** What is subtracted from an entity's times: nothing, its first time, or that of a point. */
export type Align = 'run' | 'start' | number;

/** When an entity passed a point, in seconds; NaN: not seen. */
export function timeOf(lives: Lives, entity: number, point: number): number {
  return seconds(lives, lives.at[point][entity]);
}

/** First time seen, in seconds; NaN: none. */
export const startOf = (lives: Lives, entity: number) => seconds(lives, lives.first[entity]);
/** Last time seen, in seconds; NaN: none. */
export const endOf = (lives: Lives, entity: number) => seconds(lives, lives.last[entity]);

/** What is subtracted from the entity's times; NaN: it lacks the point, and has no place. */
export function shiftOf(lives: Lives, entity: number, align: Align): number {
  if (align === 'run') return 0;
  return align === 'start' ? startOf(lives, entity) : timeOf(lives, entity, align);
}

function seconds({ origin, unit }: Lives, number: number): number {
  return number === NONE ? NaN : origin + number * unit;
}

/** The first and the last number of any entity; null: there is none. */
export function endsOfAll({ first, last, count, ends }: Pick<Lives, 'first' | 'last' | 'count' | 'ends'>): [number, number] | null {
  if (ends !== undefined) return ends;
  let [least, most] = [Infinity, -Infinity];
  for (let i = 0; i < count; i++) {
    if (first[i] === NONE) continue;
    if (first[i] < least) least = first[i];
    if (last[i] > most) most = last[i];
  }
  return least <= most ? [least, most] : null;
}

/** The first and the last number of the entities. */
export function ends(at: Int32Array[], first: Int32Array, last: Int32Array): void {
  first.fill(NONE);
  last.fill(NONE);
  for (const numbers of at) widen(numbers, first, last);
}

/** The same with one more point. */
export function widen(numbers: Int32Array, first: Int32Array, last: Int32Array): void {
  for (let i = 0; i < first.length; i++) {
    const n = numbers[i];
    // One that is missing is below all others.
    if (n > last[i]) last[i] = n;
    if (n !== NONE && (n < first[i] || first[i] === NONE)) first[i] = n;
  }
}

export function unpack(blob: Uint8Array, packed: Timelines): Lives {
  const anchors = packed.first ? column(blob, packed.first) : null;
  const at: Int32Array[] = [];
  for (const place of packed.at) at.push(column(blob, place, at, anchors));
  const [first, last] = [new Int32Array(packed.entities), new Int32Array(packed.entities)];
  ends(at, first, last);
  return {
    name: packed.name,
    points: packed.points,
    count: packed.entities,
    at,
    origin: packed.origin_s,
    unit: packed.unit_s,
    first,
    last,
    ids: packedIds(blob, packed.ids),
    groups: packed.groups,
    group: column(blob, packed.group),
    digits: packed.digits,
    lines: () => (packed.lines ? JSON.parse(text(blob, packed.lines)) : null),
  };
}
