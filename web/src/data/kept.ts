/** What is known of entities that grow, kept from one update to the next and mended where something changed. */

import type { Lives } from './lives';
import { merged, order, type Sort } from './order';
import { done } from './stats';
import { survey, type Survey } from './survey';
import { SurveyKeeper } from './survey_keeper';

/** Of fewer entities everything is found anew: that is quick. */
const FEW = 20_000;
/** So many changed entities of all are too many to be mended. */
const MOST = 1 / 8;
const START = JSON.stringify('start');

interface KeptOrder {
  sort: string;
  rows: Uint32Array;
  /** Who has changed since. */
  changed: Int32Array[];
  changes: number;
}

export class Kept {
  /** The entities that this is about; those before are of no use. */
  private now: Lives | null = null;
  /** Those before, as others may have drawn them, and what has changed since. */
  private last: { lives: Lives; rows: Int32Array } | null = null;
  private orders: KeptOrder[] = [];
  private keeper: SurveyKeeper | null = null;
  private found: Survey | null = null;

  /** These are about to change, and there will be `entities` of them. */
  leave(lives: Lives, rows: Int32Array, entities: number): void {
    this.found = null;
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
    for (const kept of this.orders) {
      kept.changed.push(rows);
      kept.changes += rows.length;
    }
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
    const kept = this.orders.find((one) => one.sort === key);
    if (kept && kept.changes === 0 && kept.rows.length === lives.count) return kept.rows;
    const byStart = kept || sort === 'start' ? undefined : this.order(lives, 'start')!;
    const rows = kept ? merged(lives, sort, kept.rows, kept.changed) : order({ ...lives, kept: undefined }, sort, byStart);
    // That by start is the base of all others; of these only the last one is likely to be asked for again.
    this.orders = this.orders.filter((one) => one.sort !== key && (one.sort === START || key === START));
    this.orders.push({ sort: key, rows, changed: [], changes: 0 });
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
