/** What is known of entities that grow, kept from one update to the next and mended where something changed. */

import type { Lives } from './lives';
import { merged, order, valueBy, type Sort } from './order';
import { done } from './stats';
import { survey, type Survey } from './survey';
import { SurveyKeeper } from './survey_keeper';

/** Of fewer entities everything is found anew: that is quick. */
const FEW = 20_000;
/** So many changed entities of all are too many to be mended. */
const MOST = 1 / 8;
const START = JSON.stringify('start');

interface CachedOrder {
  sort: Sort;
  key: string;
  rows: Uint32Array;
  /** Who has changed since. */
  changed: Int32Array[];
  changes: number;
}

export class LivesCache {
  /** The entities that this is about; those before are of no use. */
  private now: Lives | null = null;
  /** Those before, as others may have drawn them, and what has changed since. */
  private last: { lives: Lives; rows: Int32Array } | null = null;
  private orders: CachedOrder[] = [];
  private keeper: SurveyKeeper | null = null;
  private found: Survey | null = null;
  /** What those who are about to change are sorted by, for each order. */
  private before: Float64Array[] = [];

  /** These are about to change, and there will be `entities` of them. */
  leave(lives: Lives, rows: Int32Array, entities: number): void {
    this.found = null;
    this.before = this.orders.map(({ sort }) => sortedBy(lives, sort, rows));
    if (!this.keeper) return;
    if (rows.length > lives.count * MOST) this.keeper = null;
    else this.keeper.leave(lives, rows, entities);
  }

  /** These have changed. */
  enter(lives: Lives, sent: Int32Array): void {
    // What was sent is much more than these, and would be held by them.
    const rows = sent.slice();
    this.last = this.now && { lives: this.now, rows };
    this.now = lives;
    this.keeper?.enter(lives, rows);
    this.orders.forEach((cached, n) => {
      const [was, is] = [this.before[n], sortedBy(lives, cached.sort, rows)];
      // Most entities pass a point without another place in the order.
      const moved = rows.filter((_, k) => was[2 * k] !== is[2 * k] || was[2 * k + 1] !== is[2 * k + 1]);
      if (moved.length === 0) return;
      cached.changed.push(moved);
      cached.changes += moved.length;
    });
    this.orders = this.orders.filter(({ changes }) => changes <= lives.count * MOST);
  }

  /** Who has changed since those before; null: they are not those just before. */
  changedSince(before: Lives, now: Lives): Int32Array | null {
    return this.last?.lives === before && this.now === now ? this.last.rows : null;
  }

  /** As `order` has it; null: these are not the entities of now. */
  order(lives: Lives, sort: Sort): Uint32Array | null {
    if (lives !== this.now) return null;
    const key = JSON.stringify(sort);
    const cached = this.orders.find((one) => one.key === key);
    if (cached && cached.changes === 0 && cached.rows.length === lives.count) return cached.rows;
    const byStart = cached || sort === 'start' ? undefined : this.order(lives, 'start')!;
    const rows = cached ? merged(lives, sort, cached.rows, cached.changed) : order({ ...lives, cache: undefined }, sort, byStart);
    // That by start is the base of all others; of these only the last one is likely to be asked for again.
    this.orders = this.orders.filter((one) => one.key !== key && (one.key === START || key === START));
    this.orders.push({ sort, key, rows, changed: [], changes: 0 });
    return rows;
  }

  /** As `survey` has it; null: these are not the entities of now. */
  survey(lives: Lives): Survey | null {
    if (lives !== this.now) return null;
    if (lives.count < FEW) return (this.found ??= done(survey(lives)));
    this.keeper ??= new SurveyKeeper(lives);
    return (this.found ??= this.keeper.survey(lives));
  }
}

/** Two numbers for each of these; whose stay the same stays between the same neighbours. Who is new has none. */
function sortedBy(lives: Lives, sort: Sort, rows: Int32Array): Float64Array {
  // Ranks of groups move when there is a new one.
  const value = sort === 'group' ? (i: number) => lives.group[i] : valueBy(lives, sort);
  const numbers = new Float64Array(2 * rows.length).fill(NaN);
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if (i >= lives.count) continue;
    numbers[2 * k] = value(i);
    numbers[2 * k + 1] = lives.first[i];
  }
  return numbers;
}
