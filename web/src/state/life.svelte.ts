/** What is shown of one lifecycle, and how. */

import { alignment, bands, order, type Sort } from '../data/order';
import type { Lives } from '../data/decode';
import { durations, edges, known, percentile, phaseStats, slowestGroups, type Edges, type PhaseStats } from '../data/stats';
import type { Span, TimeAxis } from './axis.svelte';

/** Where time 0 of a row is: the run's start, the entity's start, or one of its points. */
export type Align = 'run' | 'start' | number;

/** How many times the 99th percentile makes an interval one that always shows. */
const FAR = 2;

export class LifeView {
  readonly lives: Lives;
  readonly axis: TimeAxis;
  readonly phases: string[];
  /** Entities by start, as the first and the last fifth are taken from. */
  readonly byStart: Uint32Array;
  /** For each phase the length beyond which an interval always shows. */
  readonly long: number[];
  /** Does any phase of any entity end before it starts? */
  readonly backwards: boolean;

  sort = $state.raw<Sort>('start');
  align = $state<Align>('run');
  /** Does the run's time axis narrow to this lifecycle while nothing is zoomed? */
  fit = $state(true);
  zoomedRows = $state.raw<Span | null>(null);
  /** Zoom while rows are aligned to something else than the run. */
  private ownZoom = $state.raw<Span | null>(null);
  shown = $state<boolean[]>([]);
  /** The phase that is lit, by pointer or focus. */
  lit = $state<number | null>(null);
  hovered = $state<number | null>(null);
  selected = $state<number | null>(null);

  order = $derived.by(() => order(this.lives, this.sort));
  offset = $derived.by(() => alignment(this.lives, this.align));
  rows = $derived.by<Span>(() => this.zoomedRows ?? [0, this.lives.count]);
  /** Times at the edges of the chart. */
  span = $derived.by<Span>(() => {
    if (this.align !== 'run') return this.ownZoom ?? this.extent;
    return this.axis.zoomed ?? (this.fit ? this.extent : this.axis.full);
  });
  /** First to last time of any entity, under the alignment. */
  private extent = $derived.by(() => extent(this.lives, this.offset));
  /** Entities in sight: in a shown row, alive in the shown stretch of time. */
  visible = $derived.by(() => {
    if (!this.zoomed) return this.byStart;
    const seen = this.order.subarray(this.rows[0], this.rows[1]).filter((i) => {
      const shift = this.offset ? this.offset[i] : 0;
      return this.lives.end[i] - shift >= this.span[0] && this.lives.start[i] - shift <= this.span[1];
    });
    return seen;
  });
  /** Numbers of each phase, over the entities in sight. */
  stats = $derived.by(() => (this.zoomed ? phaseStats(this.lives, this.visible) : this.allStats));
  /** For each phase the slowest group, over the entities in sight. */
  slowest = $derived.by(() => slowestGroups(this.lives, this.visible));
  /** The same numbers over all entities. Like the next made when it is first looked at, after the chart is drawn. */
  allStats = $derived.by<PhaseStats[]>(() => phaseStats(this.lives, this.byStart));
  /** For each phase, when entities enter and leave it. */
  edges = $derived.by<Edges[]>(() => this.phases.map((_, phase) => edges(this.lives, phase, this.byStart)));

  constructor(lives: Lives, axis: TimeAxis) {
    this.lives = lives;
    this.axis = axis;
    this.phases = lives.points.slice(1).map((to, i) => `${lives.points[i]} → ${to}`);
    this.shown = this.phases.map(() => true);
    this.byStart = order(lives, 'start');
    const sorted = this.phases.map((_, phase) => known(durations(lives, phase, this.byStart)));
    const p99s = sorted.map((values) => percentile(values, 0.99));
    this.long = p99s.map((p99) => (p99 > 0 ? FAR * p99 : Infinity));
    this.backwards = sorted.some((values) => values[0] < 0);
  }

  /** Shows newer timelines of the same lifecycle as older ones are shown. */
  continues(before: LifeView): this {
    const { sort, align, fit, zoomedRows, ownZoom, shown, selected } = before;
    if (shown.length !== this.shown.length) return this;
    Object.assign(this, { sort, align, fit, zoomedRows, ownZoom, shown, lit: before.lit });
    const id = selected === null ? -1 : this.lives.ids.indexOf(before.lives.ids[selected]);
    this.selected = id < 0 ? null : id;
    return this;
  }

  get zoomed(): boolean {
    const time = this.align === 'run' ? this.axis.zoomed : this.ownZoom;
    return time !== null || this.zoomedRows !== null;
  }

  zoomTime(a: number, b: number): void {
    if (this.align === 'run') this.axis.zoom(a, b);
    else if (Math.abs(b - a) > 1e-6) this.ownZoom = a < b ? [a, b] : [b, a];
  }

  zoomRows(from: number, to: number): void {
    const first = Math.max(0, Math.floor(Math.min(from, to)));
    const last = Math.min(this.lives.count, Math.ceil(Math.max(from, to)));
    if (last > first) this.zoomedRows = [first, last];
  }

  reset(): void {
    this.zoomedRows = null;
    this.ownZoom = null;
    if (this.align === 'run') this.axis.reset();
  }

  setSort(sort: Sort): void {
    this.sort = sort;
    this.zoomedRows = null;
  }

  /** The rows of each group, when rows are sorted by group. */
  bands = $derived.by(() => (this.sort === 'group' ? bands(this.lives, this.order) : []));

  /** Sorts by group and shows the rows of this one. */
  showGroup(group: number): void {
    this.setSort('group');
    const band = this.bands.find((one) => one.group === group);
    if (band) this.zoomedRows = [band.from, band.to];
  }

  setAlign(align: Align): void {
    this.align = align;
    this.ownZoom = null;
  }

  toggle(phase: number): void {
    this.shown[phase] = !this.shown[phase];
  }

  /** The entity with this id, or with the first id that contains the text; -1: none. */
  find(text: string): number {
    const exact = this.lives.ids.indexOf(text);
    return exact >= 0 ? exact : this.lives.ids.findIndex((id) => id.includes(text));
  }

  select(entity: number): void {
    this.selected = entity;
    const row = this.order.indexOf(entity);
    if (row < this.rows[0] || row >= this.rows[1]) this.zoomedRows = null;
  }
}

function extent(lives: Lives, offset: Float64Array | null): Span {
  let from = Infinity;
  let to = -Infinity;
  for (let i = 0; i < lives.count; i++) {
    const shift = offset ? offset[i] : 0;
    if (lives.start[i] - shift < from) from = lives.start[i] - shift;
    if (lives.end[i] - shift > to) to = lives.end[i] - shift;
  }
  if (!(to > from)) return Number.isFinite(from) ? [from - 0.5, from + 0.5] : [0, 1];
  const margin = (to - from) * 0.01;
  return [from - margin, to + margin];
}
