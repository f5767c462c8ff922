/** What is shown of one lifecycle, and how. */

import { untrack } from 'svelte';
import { still } from '../data/growing';
import { bands, order, sorted, type Sort } from '../data/order';
import { endOf, shiftOf, startOf, type Align, type Lives } from '../data/lives';
import { done, edges, numbersOf, type Edges, type Numbers, type Pieces } from '../data/stats';
import { survey } from '../data/survey';
import { within, type Span, type TimeAxis } from './axis.svelte';
import { Counting } from './counting.svelte';
import { extent, withRoom } from './extent';
import { MANY } from './later';

export type { Align };

/** The numbers of entities that may change between two pieces: of how they are when it begins. */
function* numbersNow(lives: Lives, rows: Uint32Array): Pieces<Numbers> {
  return yield* numbersOf(still(lives), rows);
}

/** Of many entities the numbers come in pieces. */
function* edgesOf(grows: Lives, rows: Uint32Array): Pieces<Edges[]> {
  const lives = still(grows);
  const found: Edges[] = [];
  for (let phase = 0; phase < lives.points.length - 1; phase++, yield) found.push(edges(lives, phase, rows));
  return found;
}

export class LifeView {
  readonly lives: Lives;
  readonly axis: TimeAxis;
  readonly phases: string[];

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
  private chosen = $state<number | null>(null);
  /** Its id: of a run that goes on it may be at another place later. */
  private chosenId: string | null = null;

  /** Entities by start, as the first and the last fifth are taken from. */
  byStart = $derived.by(() => order(this.lives, 'start'));
  order = $derived.by(() => order(this.lives, this.sort, this.byStart));
  rows = $derived.by<Span>(() => this.zoomedRows ?? [0, withRoom(this.lives, this.lives.count)]);
  /** Times at the edges of the chart. */
  span = $derived.by<Span>(() => {
    if (this.align !== 'run') return this.ownZoom ?? this.extent;
    return this.axis.zoomed ?? (this.fit ? this.extent : this.axis.full);
  });
  private extent = $derived.by(() => extent(this.lives, this.align));
  /** Entities in sight: in a shown row, alive in the shown stretch of time. */
  visible = $derived.by(() => {
    if (!this.zoomed) return this.byStart;
    const { lives, align, order } = this;
    const [from, to] = [this.rows[0], Math.min(this.rows[1], lives.count)];
    const [begin, end] = this.span;
    const seen = new Uint32Array(to - from);
    let n = 0;
    for (let row = from; row < to; row++) {
      const i = order[row];
      const shift = shiftOf(lives, i, align);
      if (endOf(lives, i) - shift >= begin && startOf(lives, i) - shift <= end) seen[n++] = i;
    }
    return seen.subarray(0, n);
  });
  /** The same by start. */
  visibleByStart = $derived.by(() => (this.zoomed ? sorted(this.lives, this.visible.slice(), 'start') : this.byStart));
  /** What is in sight, as a text: the same of newer data. */
  sight = $derived(this.zoomed ? JSON.stringify([this.rows, this.span, this.align, this.sort]) : '');

  private counting = new Counting<Numbers>();
  private crossing = new Counting<Edges[]>();
  /** Numbers over the entities in sight; null: of many entities they come later. */
  numbers = $derived.by(() => (this.visible.length <= MANY ? done(numbersOf(this.lives, this.visible)) : this.counting.value));
  /** Are the numbers those of what was in sight before? */
  stale = $derived.by(() => this.visible.length > MANY && this.counting.stale);
  /** For each phase, when entities enter and leave it; null: not yet. */
  edges = $derived.by(() => (this.lives.count <= MANY ? done(edgesOf(this.lives, this.byStart)) : this.crossing.value));
  survey = $derived.by(() => this.lives.cache?.survey(this.lives) ?? done(survey(this.lives)));

  constructor(lives: Lives, axis: TimeAxis) {
    this.lives = lives;
    this.axis = axis;
    this.phases = lives.points.slice(1).map((to, i) => `${lives.points[i]} → ${to}`);
    this.shown = this.phases.map(() => true);
  }

  /** Has the numbers of many entities counted that are in sight now. */
  count(): void {
    const { visible, sight, lives } = this;
    untrack(() => {
      if (visible.length <= MANY) this.counting.cancel();
      else this.counting.want(sight, () => numbersNow(lives, visible));
    });
  }

  /** Has told when many entities enter and leave each phase. */
  cross(): void {
    const { lives, byStart } = this;
    if (lives.count > MANY) untrack(() => this.crossing.want('', () => edgesOf(lives, byStart)));
  }

  /** Shows newer timelines of the same lifecycle as older ones are shown. */
  continues(before: LifeView): this {
    const { sort, align, fit, zoomedRows, ownZoom, shown, chosen, chosenId } = before;
    if (shown.length !== this.shown.length) return this;
    Object.assign(this, { sort, align, fit, zoomedRows, ownZoom, shown, lit: before.lit });
    // What is counted in pieces stays until there is something newer.
    this.counting = before.counting;
    this.crossing = before.crossing;
    if (chosen === null || chosenId === null) return this;
    const { ids, count } = this.lives;
    const entity = chosen < count && ids.at(chosen) === chosenId ? chosen : ids.exactly(chosenId);
    if (entity >= 0) this.selected = entity;
    return this;
  }

  get selected(): number | null {
    return this.chosen;
  }

  set selected(entity: number | null) {
    this.chosen = entity;
    this.chosenId = entity === null ? null : this.lives.ids.at(entity);
  }

  get zoomed(): boolean {
    const time = this.align === 'run' ? this.axis.zoomed : this.ownZoom;
    return time !== null || this.zoomedRows !== null;
  }

  zoomTime(a: number, b: number): void {
    if (this.align === 'run') this.axis.zoom(a, b);
    else if (Math.abs(b - a) > 1e-6) this.ownZoom = a < b ? [a, b] : [b, a];
  }

  /** Shows a stretch of so many times the length of now, by so many lengths of now later, within what there is. */
  moveTime(later: number, times: number): void {
    const [from, to] = this.span;
    const length = to - from;
    const [middle, half] = [(from + to) / 2 + later * length, (times * length) / 2];
    const [begin, end] = within([middle - half, middle + half], this.whole) ?? this.whole;
    if (begin !== from || end !== to) this.zoomTime(begin, end);
  }

  /** All that the chart's axis of time could show. */
  private get whole(): Span {
    if (this.align !== 'run') return this.extent;
    const [[begin, end], [first, last]] = [this.extent, this.axis.full];
    return [Math.min(begin, first), Math.max(end, last)];
  }

  zoomRows(from: number, to: number): void {
    const first = Math.max(0, Math.floor(Math.min(from, to)));
    const last = Math.min(this.lives.count, Math.ceil(Math.max(from, to)));
    if (last > first) this.zoomedRows = [first, last];
  }

  /** The zoom of the rows as a text, with the order that they have; null: there is none. */
  get rowsAsText(): string | null {
    return this.zoomedRows && JSON.stringify([this.sort, ...this.zoomedRows]);
  }

  /** Zooms to the rows that a text tells, if this lifecycle has them. */
  zoomToText(text: string | null): void {
    let told: unknown;
    try {
      told = JSON.parse(text ?? 'null');
    } catch {
      return;
    }
    if (!Array.isArray(told) || told.length !== 3 || !told.slice(1).every(Number.isInteger)) return;
    const { groups, count } = this.lives;
    const sorts: Sort[] = ['start', 'end', 'total', ...this.phases.map((_, phase) => ({ phase }))];
    if (groups.length > 0) sorts.push('group');
    const sort = sorts.find((one) => JSON.stringify(one) === JSON.stringify(told[0]));
    const [from, to]: number[] = told.slice(1);
    if (sort === undefined || from < 0 || from >= to || to > count) return;
    this.setSort(sort);
    this.zoomRows(from, to);
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
  showGroup(name: string): void {
    this.setSort('group');
    const band = this.bands.find(({ group }) => this.lives.groups[group] === name);
    if (band) this.zoomedRows = [band.from, band.to];
  }

  setAlign(align: Align): void {
    this.align = align;
    this.ownZoom = null;
  }

  toggle(phase: number): void {
    this.shown[phase] = !this.shown[phase];
  }

  /** The entity with this id, or the first whose id contains the text; -1: none. */
  find(text: string): number {
    return this.lives.ids.find(text);
  }

  /** Selects the entity with this id. */
  selectId(id: string): void {
    const entity = this.lives.ids.exactly(id);
    if (entity >= 0) this.select(entity);
  }

  select(entity: number): void {
    this.selected = entity;
    const row = this.order.indexOf(entity);
    if (row < this.rows[0] || row >= this.rows[1]) this.zoomedRows = null;
  }
}
