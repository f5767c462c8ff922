/** Orders of entities: which row of the chart each one takes. */

import type { Lives } from './decode';

/** By first time seen, last time seen, length of life, group, or a phase's length. */
export type Sort = 'start' | 'end' | 'total' | 'group' | { phase: number };

/** Entities in the order of `sort`; those without the value come last. */
export function order(lives: Lives, sort: Sort): Uint32Array {
  const rows = new Uint32Array(lives.count);
  for (let i = 0; i < rows.length; i++) rows[i] = i;
  const first = sort === 'group' ? groupRanks(lives) : keys(lives, sort);
  const then = lives.start;
  return rows.sort((a, b) => compare(first[a], first[b]) || compare(then[a], then[b]) || a - b);
}

function keys(lives: Lives, sort: Exclude<Sort, 'group'>): Float64Array {
  if (sort === 'start') return lives.start;
  if (sort === 'end') return lives.end;
  if (sort === 'total') return lives.end.map((end, i) => end - lives.start[i]);
  const from = lives.at[sort.phase];
  return lives.at[sort.phase + 1].map((to, i) => to - from[i]);
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
  order.forEach((entity, row) => {
    const group = lives.group[entity];
    const last = found.at(-1);
    if (last?.group === group) last.to = row + 1;
    else found.push({ group, from: row, to: row + 1 });
  });
  return found;
}

/** Ranks of the groups' names as people sort them: cell-9 before cell-10. */
function groupRanks(lives: Lives): Float64Array {
  const collator = new Intl.Collator('en', { numeric: true });
  const sorted = lives.groups
    .map((name, index) => ({ name, index }))
    .sort((a, b) => collator.compare(a.name, b.name) || a.index - b.index);
  const rank = new Float64Array(lives.groups.length);
  sorted.forEach(({ index }, place) => (rank[index] = place));
  return Float64Array.from(lives.group, (group) => (group < 0 ? NaN : rank[group]));
}

function compare(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) return 0;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/** What is subtracted from each entity's times so that `point` is at 0. */
export function alignment(lives: Lives, align: 'run' | 'start' | number): Float64Array | null {
  if (align === 'run') return null;
  return align === 'start' ? lives.start : lives.at[align];
}
