/** The survey of entities that grow, mended where something changed instead of made anew. */

import { NONE, type Lives } from './lives';
import { bucket, BUCKETS, byLength, FAR, Rank, type Outlier, type Survey } from './survey';

/** Of each phase the longest intervals are kept: this part of all when they are chosen, and at most that. */
const CHOSEN = 0.02;
const KEPT = 0.05;
/** So many are kept in any case. */
const FEWEST = 1000;

/** One phase. */
interface Phase {
  /** Lengths by bucket, and how many there are. */
  counts: Uint32Array;
  n: number;
  /** Entities whose interval is at least so long, or runs backwards. */
  least: number;
  long: number[];
  /** What was found when nothing was other than now; null: something is. */
  found: { most: number; far: Outlier[]; backwards: boolean } | null;
  /** What was found last. */
  far: Outlier[];
}

/** Entities that are about to change: who, how many there are of all, and their numbers before, point by point. */
interface Leaving {
  rows: Int32Array;
  count: number;
  at: Int32Array[];
}

export class SurveyKeeper {
  private readonly phases: Phase[];
  private readonly missing: number[];
  private complete = 0;
  private readonly gaps = new Set<number>();
  private leaving: Leaving | null = null;

  constructor(lives: Lives) {
    const { at, count } = lives;
    this.missing = at.map(() => 0);
    this.phases = at.slice(1).map(() => ({ counts: new Uint32Array(BUCKETS), n: 0, least: Infinity, long: [], found: null, far: [] }));
    const all = new Uint32Array(count);
    for (let i = 0; i < count; i++) all[i] = i;
    this.phases.forEach((phase, p) => (phase.n = tally(phase.counts, at[p], at[p + 1], all, 1)));
    at.forEach((numbers, point) => (this.missing[point] = lacking(numbers)));
    const shows = seen(at, count);
    for (let i = 0; i < count; i++) {
      if (shows[i] === WHOLE) this.complete++;
      else if (shows[i] === GAP) this.gaps.add(i);
    }
  }

  /** These are about to change, and there will be `entities`. */
  leave({ at, count }: Lives, rows: Int32Array, entities: number): void {
    const gone = new Int32Array(Math.max(count - entities, 0));
    for (let k = 0; k < gone.length; k++) gone[k] = entities + k;
    const all = new Int32Array(rows.length + gone.length);
    // Who is no more may be among them, too.
    const kept = rows.filter((row) => row < entities);
    all.set(kept);
    all.set(gone, kept.length);
    const who = all.subarray(0, kept.length + gone.length);
    this.leaving = { rows: who, count, at: at.map((numbers) => numbersOf(numbers, who, count)) };
  }

  /** These are as they are now. */
  enter({ at, count }: Lives, rows: Int32Array): void {
    const left = this.leaving;
    this.leaving = null;
    if (left) this.change(left, { ...left, count, at: at.map((numbers) => numbersOf(numbers, left.rows, count)) });
    else if (rows.length > 0) throw new Error('who changes was not said before');
  }

  survey(lives: Lives): Survey {
    const { at, count } = lives;
    const far: Outlier[] = [];
    let backwards = false;
    const long = this.phases.map((phase, p) => {
      const found = (phase.found ??= find(phase, p, at[p], at[p + 1], count));
      for (const one of found.far) far.push(one);
      if (found.backwards) backwards = true;
      return found.most;
    });
    const gaps = Uint32Array.from(this.gaps).sort();
    for (const entity of gaps) {
      let from = -1;
      for (let to = 0; to < at.length; to++) {
        const n = at[to][entity];
        if (n === NONE) continue;
        const length = from < 0 ? 0 : n - at[from][entity];
        if (length < 0 && from < to - 1) far.push({ entity, from, to, length: -length });
        from = to;
      }
    }
    // Each phase brings its own in order, and runs that are in order are only merged.
    far.sort(byLength);
    return { long, far, gaps, backwards, complete: this.complete, missing: this.missing.slice() };
  }

  /** The same entities were so before and are so now. */
  private change(before: Leaving, now: Leaving): void {
    const { rows } = now;
    // Those who are not there lack nothing.
    const absent = ({ count }: Leaving) => rows.reduce((n, row) => n + Number(row >= count), 0);
    const came = absent(before) - absent(now);
    for (let point = 0; point < now.at.length; point++) {
      this.missing[point] += lacking(now.at[point]) - lacking(before.at[point]) + came;
      if (point === 0) continue;
      const phase = this.phases[point - 1];
      const [begins, ends, newBegins, newEnds] = [before.at[point - 1], before.at[point], now.at[point - 1], now.at[point]];
      const other = differing(begins, ends, newBegins, newEnds);
      if (other.length === 0) continue;
      phase.found = null;
      phase.n += tally(phase.counts, newBegins, newEnds, other, 1) - tally(phase.counts, begins, ends, other, -1);
      const left = new Set<number>();
      for (const k of other) if (isLong(phase, begins[k], ends[k])) left.add(rows[k]);
      if (left.size > 0) phase.long = phase.long.filter((i) => !left.has(i));
      for (const k of other) if (isLong(phase, newBegins[k], newEnds[k])) phase.long.push(rows[k]);
    }
    const [was, is] = [seen(before.at, rows.length), seen(now.at, rows.length)];
    for (let k = 0; k < rows.length; k++) {
      this.complete += Number(is[k] === WHOLE) - Number(was[k] === WHOLE);
      if (was[k] === GAP) this.gaps.delete(rows[k]);
      if (is[k] === GAP) this.gaps.add(rows[k]);
    }
  }
}

/** What of a phase always shows. */
function find(phase: Phase, p: number, begins: Int32Array, ends: Int32Array, count: number): NonNullable<Phase['found']> {
  const p99 = new Rank(phase.counts, phase.n, 0.99);
  if (leastOf(p99) < phase.least || phase.long.length > Math.max(FEWEST, KEPT * phase.n)) {
    phase.least = leastOf(new Rank(phase.counts, phase.n, 1 - CHOSEN));
    phase.long = [];
    for (let i = 0; i < count; i++) if (isLong(phase, begins[i], ends[i])) phase.long.push(i);
  }
  const known = p99.to - p99.from === 1;
  for (const i of known ? [] : phase.long) {
    const length = ends[i] - begins[i];
    if (length >= p99.from && length < p99.to) p99.take(length);
  }
  const value = known ? p99.from : p99.from > 0 ? p99.found() : 0;
  const most = value > 0 ? FAR * value : Infinity;
  // What stays as it was stays the same object, by which others tell what is new.
  const before = new Map(phase.far.map((one) => [one.entity, one]));
  const far: Outlier[] = [];
  let backwards = false;
  for (const i of phase.long) {
    const length = ends[i] - begins[i];
    if (length < 0) backwards = true;
    if (length >= 0 && length <= most) continue;
    const one = before.get(i);
    far.push(one?.length === Math.abs(length) ? one : { entity: i, from: p, to: p + 1, length: Math.abs(length) });
  }
  phase.far = far.sort(byLength);
  return { most, far, backwards };
}

/** From which length on intervals must be kept so that the one at this rank can be told, and those that are longer. */
function leastOf({ from, to }: Rank): number {
  if (from < 0) return 1;
  return to - from === 1 ? to : from;
}

/** Is an interval long enough to be kept, or does it run backwards? */
function isLong({ least }: Phase, begin: number, end: number): boolean {
  return begin !== NONE && end !== NONE && (end - begin >= least || end < begin);
}

/** What an entity shows: a part of the points without a gap, all of them, or one behind one that it lacks. */
const [PART, WHOLE, GAP] = [0, 1, 2];

/** What each of `n` entities shows. */
function seen(at: Int32Array[], n: number): Uint8Array {
  // While points are looked at: nothing yet, some, and some before one that is lacking.
  const [NOTHING, SOME, LACKS] = [0, 1, 3];
  const states = new Uint8Array(n);
  const lacks = new Uint8Array(n);
  for (const numbers of at) {
    for (let k = 0; k < n; k++) {
      const state = states[k];
      if (numbers[k] === NONE) {
        lacks[k] = 1;
        if (state === SOME) states[k] = LACKS;
      } else if (state === LACKS) states[k] = GAP;
      else if (state === NOTHING) states[k] = SOME;
    }
  }
  for (let k = 0; k < n; k++) states[k] = lacks[k] === 0 ? WHOLE : states[k] === GAP ? GAP : PART;
  return states;
}

/** The numbers of these; who is not there has none. */
function numbersOf(numbers: Int32Array, rows: Int32Array, count: number): Int32Array {
  const own = new Int32Array(rows.length);
  for (let k = 0; k < rows.length; k++) own[k] = rows[k] < count ? numbers[rows[k]] : NONE;
  return own;
}

function lacking(numbers: Int32Array): number {
  let n = 0;
  for (let k = 0; k < numbers.length; k++) if (numbers[k] === NONE) n++;
  return n;
}

/** The places at which an interval is another one. */
function differing(begins: Int32Array, ends: Int32Array, newBegins: Int32Array, newEnds: Int32Array): Uint32Array {
  const places = new Uint32Array(begins.length);
  let n = 0;
  for (let k = 0; k < begins.length; k++) if (begins[k] !== newBegins[k] || ends[k] !== newEnds[k]) places[n++] = k;
  return places.subarray(0, n);
}

/** Counts the lengths at these places by bucket, so many times each; tells how many there are. */
function tally(counts: Uint32Array, begins: Int32Array, ends: Int32Array, places: Uint32Array, times: number): number {
  let n = 0;
  for (const k of places) {
    if (begins[k] === NONE || ends[k] === NONE) continue;
    counts[bucket(ends[k] - begins[k])] += times;
    n++;
  }
  return n;
}
