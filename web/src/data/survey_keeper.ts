/** The survey of entities that grow, mended where something changed instead of made anew. */

import { NONE, type Lives } from './lives';
import { bucket, BUCKETS, FAR, Rank, type FarOne, type Survey } from './survey';

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
}

export class SurveyKeeper {
  private readonly phases: Phase[];
  private readonly missing: number[];
  private complete = 0;
  private readonly gaps = new Set<number>();
  /** Who is about to change. */
  private leaving = new Uint8Array(0);

  constructor(lives: Lives) {
    const { at, count } = lives;
    this.missing = at.map(() => 0);
    this.phases = at.slice(1).map(() => ({ counts: new Uint32Array(BUCKETS), n: 0, least: Infinity, long: [] }));
    const everyone = new Int32Array(count);
    for (let i = 0; i < count; i++) everyone[i] = i;
    this.enter(lives, everyone);
  }

  /** These are about to change, and there will be `entities`. */
  leave(lives: Lives, rows: Int32Array, entities: number): void {
    const gone = new Int32Array(Math.max(lives.count - entities, 0));
    for (let k = 0; k < gone.length; k++) gone[k] = entities + k;
    this.leaving = new Uint8Array(lives.count);
    for (const some of [rows, gone]) {
      for (let k = 0; k < some.length; k++) if (some[k] < lives.count) this.leaving[some[k]] = 1;
    }
    const who: number[] = [];
    for (let i = 0; i < lives.count; i++) if (this.leaving[i] === 1) who.push(i);
    this.count(lives, Int32Array.from(who), -1);
    for (const i of who) this.gaps.delete(i);
    for (const phase of this.phases) phase.long = phase.long.filter((i) => this.leaving[i] === 0);
  }

  /** These are as they are now. */
  enter(lives: Lives, rows: Int32Array): void {
    const { at } = lives;
    this.count(lives, rows, 1);
    this.phases.forEach((phase, p) => keep(phase, at[p], at[p + 1], rows));
  }

  survey(lives: Lives): Survey {
    const { at, count } = lives;
    const far: FarOne[] = [];
    let backwards = false;
    const long = this.phases.map((phase, p) => {
      const [begins, ends] = [at[p], at[p + 1]];
      const p99 = new Rank(phase.counts, phase.n, 0.99);
      if (leastOf(p99) < phase.least || phase.long.length > Math.max(FEWEST, KEPT * phase.n)) {
        phase.least = leastOf(new Rank(phase.counts, phase.n, 1 - CHOSEN));
        phase.long = [];
        keep(phase, begins, ends, everyone(count));
      }
      const known = p99.to - p99.from === 1;
      for (const i of known ? [] : phase.long) {
        const length = ends[i] - begins[i];
        if (length >= p99.from && length < p99.to) p99.take(length);
      }
      const found = known ? p99.from : p99.from > 0 ? p99.found() : 0;
      const most = found > 0 ? FAR * found : Infinity;
      for (const i of phase.long) {
        const length = ends[i] - begins[i];
        if (length < 0) backwards = true;
        if (length < 0 || length > most) far.push({ entity: i, from: p, to: p + 1, length: Math.abs(length) });
      }
      return most;
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
    far.sort((a, b) => a.length - b.length || a.to - b.to || a.entity - b.entity);
    return { long, far, gaps, backwards, complete: this.complete, missing: this.missing.slice() };
  }

  /** Adds what these entities are to the numbers of all, so many times. */
  private count({ at }: Lives, rows: Int32Array, times: number): void {
    const lacks = new Uint8Array(rows.length);
    const ended = new Uint8Array(rows.length);
    for (let point = 0; point < at.length; point++) {
      const numbers = at[point];
      let missing = 0;
      for (let k = 0; k < rows.length; k++) {
        // One that shows a point after it lacked one that came after another one has a gap.
        if (numbers[rows[k]] === NONE) {
          missing++;
          lacks[k] = 1;
          if (ended[k] === 1) ended[k] = 2;
        } else if (ended[k] === 2) ended[k] = 3;
        else if (ended[k] === 0) ended[k] = 1;
      }
      this.missing[point] += times * missing;
      if (point > 0) {
        const phase = this.phases[point - 1];
        phase.n += times * tally(phase.counts, at[point - 1], numbers, rows, times);
      }
    }
    for (let k = 0; k < rows.length; k++) {
      if (lacks[k] === 0) this.complete += times;
      else if (ended[k] === 3 && times > 0) this.gaps.add(rows[k]);
    }
  }
}

/** From which length on intervals must be kept so that the one at this rank can be told, and those that are longer. */
function leastOf({ from, to }: Rank): number {
  if (from < 0) return 1;
  return to - from === 1 ? to : from;
}

/** Counts the lengths of these by bucket, so many times each; tells how many there are. */
function tally(counts: Uint32Array, begins: Int32Array, ends: Int32Array, rows: Int32Array, times: number): number {
  let n = 0;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if (begins[i] === NONE || ends[i] === NONE) continue;
    counts[bucket(ends[i] - begins[i])] += times;
    n++;
  }
  return n;
}

/** Keeps those whose intervals are long enough or run backwards. */
function keep(phase: Phase, begins: Int32Array, ends: Int32Array, rows: Int32Array): void {
  const { least, long } = phase;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if (begins[i] === NONE || ends[i] === NONE) continue;
    const length = ends[i] - begins[i];
    if (length >= least || length < 0) long.push(i);
  }
}

function everyone(count: number): Int32Array {
  const rows = new Int32Array(count);
  for (let i = 0; i < count; i++) rows[i] = i;
  return rows;
}
