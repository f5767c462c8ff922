/** Orders of entities: which row of the chart each one takes. */

import { NONE, type Lives } from './lives';
import { sortBy } from './radix';

/** By first time seen, last time seen, length of life, group, or a phase's length. */
export type Sort = 'start' | 'end' | 'total' | 'group' | { phase: number };

/**
 * Entities in the order of `sort`; those without the value come last, and equals are by start.
 * `byStart` has all of them by start, if that is known.
 */
export function order(lives: Lives, sort: Sort, byStart?: Uint32Array): Uint32Array {
  const cached = lives.cache?.order(lives, sort);
  if (cached) return cached;
  if (sort === 'start') return byStart ?? sorted(lives, everyone(lives.count), sort);
  return sorted(lives, (byStart ?? order(lives, 'start')).slice(), sort);
}

function everyone(count: number): Uint32Array {
  const rows = new Uint32Array(count);
  for (let i = 0; i < count; i++) rows[i] = i;
  return rows;
}

/** Some entities in the order of `sort`, equals as they came; the array is used up. */
export function sorted(lives: Lives, rows: Uint32Array, sort: Sort): Uint32Array {
  const { first, last, group, at } = lives;
  const ranks = sort === 'group' ? groupRanks(lives.groups) : null;
  const values = new Int32Array(rows.length);
  const lacks = new Uint8Array(rows.length);
  let [least, most] = [Infinity, -Infinity];
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    let value: number;
    let known: boolean;
    if (typeof sort === 'object') {
      const from = at[sort.phase][i];
      const to = at[sort.phase + 1][i];
      known = from !== NONE && to !== NONE;
      value = to - from;
    } else if (ranks) {
      known = group[i] >= 0;
      value = ranks[group[i]];
    } else {
      known = first[i] !== NONE;
      value = sort === 'start' ? first[i] : sort === 'end' ? last[i] : last[i] - first[i];
    }
    if (!known) {
      lacks[k] = 1;
      continue;
    }
    values[k] = value;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  if (most < least) return rows;
  const keys = new Uint32Array(rows.length);
  const none = most - least + 1;
  for (let k = 0; k < rows.length; k++) keys[k] = lacks[k] ? none : values[k] - least;
  return sortBy(rows, keys, none, false).items;
}

/**
 * An order after some entities have changed, are new or are no more: as a new one would be.
 *
 * Those that stay as they were need no sorting, and the few others find their places between them.
 */
export function merged(lives: Lives, sort: Sort, before: Uint32Array, changed: Int32Array[]): Uint32Array {
  const { count } = lives;
  const moves = new Uint8Array(Math.max(count, before.length));
  // Entities that are no more have no place.
  moves.fill(1, count);
  const few = new Uint32Array(changed.reduce((sum, rows) => sum + rows.length, 0));
  let n = 0;
  for (const rows of changed) {
    for (let k = 0; k < rows.length; k++) {
      if (moves[rows[k]] === 0) few[n++] = rows[k];
      moves[rows[k]] = 1;
    }
  }
  const rest = staying(before, moves);
  const who = few.subarray(0, n).sort();
  const movers = sorted(lives, sort === 'start' ? who : sorted(lives, who, 'start'), sort);
  const value = valueBy(lives, sort);
  const start = valueBy(lives, 'start');
  const rows = new Uint32Array(count);
  let from = 0;
  for (let k = 0; k < movers.length; k++) {
    const mover = movers[k];
    const own = value(mover);
    const isBefore = (other: number): boolean => {
      const theirs = value(other);
      if (theirs !== own) return theirs < own;
      const [s, t] = [start(other), start(mover)];
      return s !== t ? s < t : other < mover;
    };
    // The first one that stays and comes after the mover.
    let [low, high] = [from, rest.length];
    for (let step = 1; low + step < high; step *= 2) {
      if (isBefore(rest[low + step])) low += step;
      else high = low + step;
    }
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(rest[middle])) low = middle + 1;
      else high = middle;
    }
    rows.set(rest.subarray(from, low), from + k);
    rows[low + k] = mover;
    from = low;
  }
  rows.set(rest.subarray(from), from + movers.length);
  return rows;
}

function staying(before: Uint32Array, moves: Uint8Array): Uint32Array {
  const rest = new Uint32Array(before.length);
  let n = 0;
  for (let k = 0; k < before.length; k++) if (moves[before[k]] === 0) rest[n++] = before[k];
  return rest.subarray(0, n);
}

/** What entities are sorted by; those without it come last. */
export function valueBy({ first, last, group, groups, at }: Lives, sort: Sort): (entity: number) => number {
  const none = (i: number) => first[i] === NONE;
  if (sort === 'start') return (i) => (none(i) ? Infinity : first[i]);
  if (sort === 'end') return (i) => (none(i) ? Infinity : last[i]);
  if (sort === 'total') return (i) => (none(i) ? Infinity : last[i] - first[i]);
  if (sort === 'group') {
    const ranks = groupRanks(groups);
    return (i) => (group[i] < 0 ? Infinity : ranks[group[i]]);
  }
  const [from, to] = [at[sort.phase], at[sort.phase + 1]];
  return (i) => (from[i] === NONE || to[i] === NONE ? Infinity : to[i] - from[i]);
}

/** The rows of one group: from, and up to but not including; -1: entities without a group. */
export interface Band {
  group: number;
  from: number;
  to: number;
}

/** The bands of an order by group, from the top. */
export function bands(lives: Lives, order: Uint32Array): Band[] {
  const found: Band[] = [];
  let last: Band | undefined;
  for (let row = 0; row < order.length; row++) {
    const group = lives.group[order[row]];
    if (last?.group === group) last.to = row + 1;
    else found.push((last = { group, from: row, to: row + 1 }));
  }
  return found;
}

/** Ranks of the groups' names as people sort them: cell-9 before cell-10. */
function groupRanks(groups: string[]): Uint32Array {
  const collator = new Intl.Collator('en', { numeric: true });
  const sorted = groups
    .map((name, index) => ({ name, index }))
    .sort((a, b) => collator.compare(a.name, b.name) || a.index - b.index);
  const rank = new Uint32Array(groups.length);
  sorted.forEach(({ index }, place) => (rank[index] = place));
  return rank;
}
