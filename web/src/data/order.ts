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
  const ranks = sort === 'group' ? groupRanks(lives) : null;
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
  return sortBy(rows, keys, none).items;
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
function groupRanks(lives: Lives): Uint32Array {
  const collator = new Intl.Collator('en', { numeric: true });
  const sorted = lives.groups
    .map((name, index) => ({ name, index }))
    .sort((a, b) => collator.compare(a.name, b.name) || a.index - b.index);
  const rank = new Uint32Array(lives.groups.length);
  sorted.forEach(({ index }, place) => (rank[index] = place));
  return rank;
}
