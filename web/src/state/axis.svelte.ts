/** The one time axis of the page, and the one cursor on it. */

import type { Note } from '../data/run';

export type Span = readonly [number, number];

/** A stretch that every chart on the axis shades: something was broken then. */
export interface Band {
  start_s: number;
  /** Null: until the end. */
  end_s: number | null;
}

/** A stretch of one chart that a finding is about. */
export interface Mark {
  /** Its number in the list of findings, from 1. */
  number: number;
  from_s: number;
  to_s: number;
  chart: string;
  name: string;
  phase?: number;
  /** The value at which a line is drawn. */
  level?: number;
}

/** Shortest stretch that can be zoomed to, in seconds. */
const SHORTEST_S = 1e-5;
/** Bands closer to each other than this part of the width are drawn as one. */
const TOLD_APART = 1 / 500;
/** Part of the run that is shown on either side of a moment. */
const AROUND = 1 / 20;

/** A stretch, moved so far that it lies within another one; null: it is as long as that, or longer. */
export function within([from, to]: Span, [first, last]: Span): Span | null {
  const length = to - from;
  // Half of something and twice that is all of it, whatever rounding makes of it.
  if (length >= (last - first) * (1 - 1e-9)) return null;
  const begin = Math.min(Math.max(from, first), last - length);
  return [begin, begin + length];
}

/** The stretch of a run that a text tells; null: none, or none of this run. */
export function zoomOf(text: string | null, full: Span): Span | null {
  let told: unknown;
  try {
    told = JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
  if (!Array.isArray(told) || told.length !== 2 || !told.every(Number.isFinite)) return null;
  const [from, to]: number[] = told;
  if (to - from < SHORTEST_S || from >= full[1] || to <= full[0]) return null;
  return within([from, to], full);
}

export class TimeAxis {
  /** The whole run. */
  full = $state.raw<Span>([0, 1]);
  /** The stretch that was zoomed to; null: none. */
  zoomed = $state.raw<Span | null>(null);
  /** Where the pointer is; null: nowhere. */
  cursor = $state<number | null>(null);
  /** The stretch that is being dragged over; null: none. */
  brush = $state.raw<Span | null>(null);

  /** Shaded on every chart. */
  bands = $state.raw<readonly Band[]>([]);

  /** What findings are about, each on its own chart. */
  marks = $state.raw<readonly Mark[]>([]);

  /** A line on every chart at which somebody noted something. */
  notes = $state.raw<readonly Note[]>([]);

  constructor(full: Span, bands: readonly Band[] = [], marks: readonly Mark[] = [], notes: readonly Note[] = []) {
    this.become(full, bands, marks, notes);
  }

  /** A run that goes on has become longer; what is zoomed to stays. */
  become(full: Span, bands: readonly Band[], marks: readonly Mark[], notes: readonly Note[]): void {
    this.full = full;
    this.marks = marks;
    this.notes = notes;
    this.bands = bands.toSorted((a, b) => a.start_s - b.start_s);
  }

  /** The bands within a stretch, as parts of it; those that nobody could tell apart are one. */
  bandsWithin([from, to]: Span): [number, number][] {
    const part = (t: number) => Math.min(Math.max((t - from) / (to - from), 0), 1);
    const merged: [number, number][] = [];
    for (const { start_s, end_s } of this.bands) {
      const [a, b] = [part(start_s), part(end_s ?? this.full[1])];
      const last = merged.at(-1);
      if (b <= 0 || a >= 1) continue;
      if (last && a - last[1] < TOLD_APART) last[1] = Math.max(last[1], b);
      else merged.push([a, b]);
    }
    return merged;
  }

  /** The marks of one chart. */
  marksOn(chart: string, name: string): Mark[] {
    return this.marks.filter((mark) => mark.chart === chart && mark.name === name);
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

  /** Shows a stretch and so many of its lengths before and after it, as far as the run goes; of a moment what is around it. */
  show(from: number, to: number, before = 0, after = before): void {
    const [first, last] = this.full;
    const length = to - from;
    const around = AROUND * (last - first);
    const [begin, end] = length >= SHORTEST_S ? [from - before * length, to + after * length] : [from - around, to + around];
    this.zoom(Math.max(begin, first), Math.min(end, last));
  }

  /** Shows as long a stretch as now, by so many of its lengths later, within the run. */
  pan(lengths: number): void {
    const [from, to] = this.span;
    const by = lengths * (to - from);
    this.move(from + by, to + by);
  }

  /** Shows a stretch of so many times the length around the same middle, within the run. */
  scale(times: number): void {
    const [from, to] = this.span;
    const [middle, half] = [(from + to) / 2, (times * (to - from)) / 2];
    this.move(middle - half, middle + half);
  }

  private move(from: number, to: number): void {
    const inside = within([from, to], this.full);
    if (inside) this.zoom(...inside);
    else this.reset();
  }
}

/** Shorter drags are clicks. */
const DRAG_PIXELS = 4;

/** Lets an element whose width is the axis lead the cursor, and zoom by dragging. */
export function leads(axis: TimeAxis): (element: HTMLElement) => () => void {
  return (element) => {
    const stop = new AbortController();
    const on = <K extends keyof HTMLElementEventMap>(kind: K, then: (event: HTMLElementEventMap[K]) => void) =>
      element.addEventListener(kind, then, { signal: stop.signal });
    const timeAt = (event: MouseEvent): number => {
      const { left, width } = element.getBoundingClientRect();
      const part = Math.min(Math.max((event.clientX - left) / (width || 1), 0), 1);
      return axis.span[0] + part * (axis.span[1] - axis.span[0]);
    };
    let pressed: { x: number; t: number } | null = null;
    on('pointerdown', (event) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      pressed = { x: event.clientX, t: timeAt(event) };
    });
    on('pointermove', (event) => {
      axis.cursor = timeAt(event);
      const dragged = pressed !== null && Math.abs(event.clientX - pressed.x) >= DRAG_PIXELS;
      axis.brush = dragged ? [pressed!.t, axis.cursor] : null;
    });
    on('pointerup', () => {
      if (axis.brush) axis.zoom(...axis.brush);
      pressed = axis.brush = null;
    });
    on('pointercancel', () => (pressed = axis.brush = null));
    on('pointerleave', () => (axis.cursor = null));
    on('dblclick', () => axis.reset());
    return () => stop.abort();
  };
}
