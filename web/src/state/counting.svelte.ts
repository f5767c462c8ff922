/** The newest numbers of something that goes on or is looked at in another way. */

import type { Pieces } from '../data/stats';
import { later } from './later';

/** What goes on for ever is counted an eighth of the time: the picture comes first. */
const REST = 7;

export class Counting<T> {
  /** Null: nothing was counted yet. */
  value = $state.raw<T | null>(null);
  /** Is the value that of something else than what was wanted last? */
  stale = $state(false);

  private stop: (() => void) | null = null;
  /** What the work that goes on is about, and what the value is about. */
  private about = '';
  private countedAbout = '';
  private next: (() => Pieces<T>) | null = null;

  /**
   * In pieces. Newer work about the same waits for the end of what goes on, which would never
   * end otherwise; work about something else takes its place.
   */
  want(about: string, work: () => Pieces<T>): void {
    this.stale = about !== this.countedAbout;
    if (this.stop && about === this.about) {
      this.next = work;
      return;
    }
    this.cancel();
    this.begin(about, work);
  }

  cancel(): void {
    this.stop?.();
    this.stop = this.next = null;
  }

  private begin(about: string, work: () => Pieces<T>): void {
    this.about = about;
    this.next = null;
    const began = performance.now();
    this.stop = later(work(), (value) => {
      const { next } = this;
      this.stop = this.next = null;
      this.tell(about, value);
      if (next) this.rest(about, next, REST * (performance.now() - began));
    });
  }

  /** Begins after a while, with the newest work then. */
  private rest(about: string, work: () => Pieces<T>, ms: number): void {
    this.next = work;
    const timer = setTimeout(() => this.next && this.begin(about, this.next), ms);
    this.stop = () => clearTimeout(timer);
  }

  private tell(about: string, value: T): void {
    this.value = value;
    this.countedAbout = about;
    this.stale = false;
  }
}
