/** The one time axis of the page, and the one cursor on it. */

export type Span = readonly [number, number];

/** Shortest stretch that can be zoomed to, in seconds. */
const SHORTEST_S = 1e-5;

export class TimeAxis {
  /** The whole run. */
  readonly full: Span;
  /** The stretch that was zoomed to; null: none. */
  zoomed = $state.raw<Span | null>(null);
  /** Where the pointer is; null: nowhere. */
  cursor = $state<number | null>(null);

  constructor(full: Span) {
    this.full = full;
  }

  get span(): Span {
    return this.zoomed ?? this.full;
  }

  zoom(a: number, b: number): void {
    const [from, to] = a < b ? [a, b] : [b, a];
    if (to - from >= SHORTEST_S) this.zoomed = [from, to];
  }

  reset(): void {
    this.zoomed = null;
  }
}

/** Room left and right of every panel on the axis, so that they line up. */
export const GUTTER = { left: 76, right: 16 } as const;
