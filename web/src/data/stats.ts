/** Numbers about phases, computed from the timelines. Pure functions. */

import { NONE, type Lives } from './lives';
import { sortBy, sorted } from './radix';

/** Work in pieces, none of which takes long: whoever does it may do something else between two. */
export type Pieces<T> = Generator<void, T>;

/** Does all of it at once. */
export function done<T>(pieces: Pieces<T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}

/** What is known of one phase: the stretch between two neighbouring points. */
export interface PhaseStats {
  /** Entities that show both ends. */
  count: number;
  /** Entities whose end comes before the start: clocks that disagree. */
  negative: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  /** The entity with the longest; -1: none. */
  worst: number;
  /** Sum of this phase over sum of all phases, complete entities only. */
  shareOfTime: number;
  /** cov(phase, total) / var(total), complete entities only; the shares add up to 1. */
  shareOfVariance: number;
  /** Most entities in this phase at one moment. */
  concurrencyMax: number;
}

/** Of the groups the one whose median is highest. */
export interface SlowestGroup {
  group: number;
  p50: number;
}

/** What is told of some entities. */
export interface Numbers {
  /** Whose entities and groups are meant: of a run that goes on there may be newer ones. */
  lives: Lives;
  phases: PhaseStats[];
  /** For each phase the slowest group; null where less than two groups have enough entities. */
  groups: (SlowestGroup | null)[];
  /** The entity that lived longest; -1: none. */
  slowest: number;
}

/** The place of the value at rank ceil(q × n) of n sorted values. */
export function place(n: number, q: number): number {
  // The small margin keeps 0.9 × 10 from being 9.000000000000002.
  const rank = Math.ceil(q * n - 1e-9);
  return Math.min(Math.max(rank, 1), n) - 1;
}

/** How long entities spent in a phase, in the lives' unit, and which entities. */
interface Lengths {
  values: Int32Array;
  who: Uint32Array;
}

/** Of those of `rows` that show both ends. */
export function lengths(lives: Lives, phase: number, rows: Uint32Array): Lengths {
  const [starts, ends] = [lives.at[phase], lives.at[phase + 1]];
  const values = new Int32Array(rows.length);
  const who = new Uint32Array(rows.length);
  let n = 0;
  for (let k = 0; k < rows.length; k++) {
    const from = starts[rows[k]];
    const to = ends[rows[k]];
    if (from === NONE || to === NONE) continue;
    values[n] = to - from;
    who[n++] = rows[k];
  }
  return { values: values.subarray(0, n), who: who.subarray(0, n) };
}

export function* numbersOf(lives: Lives, rows: Uint32Array): Pieces<Numbers> {
  const shares = yield* sharesOf(lives, rows);
  const phases: PhaseStats[] = [];
  const groups: (SlowestGroup | null)[] = [];
  for (let phase = 0; phase < shares.time.length; phase++) {
    const { values, who } = lengths(lives, phase, rows);
    const count = values.length;
    let [least, most, worst, negative] = [0, 0, -1, 0];
    for (let k = 0; k < count; k++) {
      const length = values[k];
      if (length < 0) negative++;
      if (k === 0 || length < least) least = length;
      if (k === 0 || length > most) [most, worst] = [length, who[k]];
    }
    yield;
    const above = new Uint32Array(count);
    for (let k = 0; k < count; k++) above[k] = values[k] - least;
    const order = sortBy(who, above, most - least);
    const seconds = (k: number) => (order.keys[k] + least) * lives.unit;
    const at = (q: number) => (count > 0 ? seconds(place(count, q)) : NaN);
    groups.push(slowestGroup(lives, order.items, seconds));
    yield;
    phases.push({
      count,
      negative,
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      max: at(1),
      worst,
      shareOfTime: shares.time[phase],
      shareOfVariance: shares.variance[phase],
      concurrencyMax: concurrencyMax(edges(lives, phase, rows)),
    });
    yield;
  }
  return { lives, phases, groups, slowest: slowestOf(lives, rows) };
}

function* sharesOf({ at }: Lives, rows: Uint32Array): Pieces<{ time: number[]; variance: number[] }> {
  const phases = Math.max(at.length - 1, 0);
  const lacks = new Uint8Array(rows.length);
  for (const numbers of at) {
    for (let k = 0; k < rows.length; k++) if (numbers[rows[k]] === NONE) lacks[k] = 1;
    yield;
  }
  const complete = rows.filter((_, k) => lacks[k] === 0);
  const n = complete.length;
  const mean = (phase: number, end: number) => {
    const [from, to] = [at[phase], at[end]];
    let sum = 0;
    for (let k = 0; k < n; k++) sum += to[complete[k]] - from[complete[k]];
    return sum / n;
  };
  const means: number[] = [];
  for (let phase = 0; phase < phases; phase++, yield) means.push(mean(phase, phase + 1));
  const total = mean(0, phases);
  const [begin, end] = [at[0], at[phases]];
  /** Sum of products of two deviations from their means. */
  const together = (phase: number, to: number, mean: number) => {
    let sum = 0;
    for (let k = 0; k < n; k++) {
      const i = complete[k];
      sum += (at[to][i] - at[phase][i] - mean) * (end[i] - begin[i] - total);
    }
    return sum;
  };
  const variance = phases > 0 ? together(0, phases, total) : 0;
  const shares: number[] = [];
  for (let phase = 0; phase < phases; phase++, yield) shares.push(together(phase, phase + 1, means[phase]) / variance);
  return { time: means.map((mean) => mean / total), variance: shares };
}

/** Fewer entities than this say little about their group. */
const FEWEST = 5;

/** Entities are in the order of their lengths, which `seconds` tells by their places. */
function slowestGroup(lives: Lives, order: Uint32Array, seconds: (place: number) => number): SlowestGroup | null {
  const { group, groups } = lives;
  if (groups.length < 2) return null;
  const sizes = new Uint32Array(groups.length);
  for (let k = 0; k < order.length; k++) if (group[order[k]] >= 0) sizes[group[order[k]]]++;
  const wanted = Int32Array.from(sizes, (size) => (size >= FEWEST ? place(size, 0.5) : -1));
  const medians = new Float64Array(groups.length).fill(NaN);
  for (let k = 0; k < order.length; k++) {
    const of = group[order[k]];
    if (of >= 0 && wanted[of]-- === 0) medians[of] = seconds(k);
  }
  let slowest: SlowestGroup | null = null;
  let enough = 0;
  medians.forEach((p50, group) => {
    if (Number.isNaN(p50)) return;
    enough++;
    if (!slowest || p50 > slowest.p50) slowest = { group, p50 };
  });
  return enough < 2 ? null : slowest;
}

function slowestOf({ first, last }: Lives, rows: Uint32Array): number {
  let [slowest, most] = [-1, -1];
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    // Of one without times that is 0; somebody with times comes before it.
    const length = first[i] === NONE ? -1 : last[i] - first[i];
    if (length > most) [slowest, most] = [i, length];
  }
  return slowest;
}

/** When entities enter and leave a phase, each sorted, in the lives' numbers. */
export interface Edges {
  starts: Uint32Array;
  ends: Uint32Array;
  origin: number;
  unit: number;
}

/** The edges of `phase` among `rows`; intervals that run backwards are left out. */
export function edges(lives: Lives, phase: number, rows: Uint32Array): Edges {
  const { origin, unit } = lives;
  const [enter, leave] = [lives.at[phase], lives.at[phase + 1]];
  const starts = new Uint32Array(rows.length);
  const ends = new Uint32Array(rows.length);
  let [n, most] = [0, 0];
  for (let k = 0; k < rows.length; k++) {
    const from = enter[rows[k]];
    const to = leave[rows[k]];
    // One that is missing is below all others.
    if (from === NONE || !(to > from)) continue;
    starts[n] = from;
    ends[n++] = to;
    if (to > most) most = to;
  }
  return { starts: sorted(starts.subarray(0, n), most), ends: sorted(ends.subarray(0, n), most), origin, unit };
}

function concurrencyMax({ starts, ends }: Edges): number {
  let most = 0;
  let ended = 0;
  for (let started = 1; started <= starts.length; started++) {
    // Who leaves at the same moment makes room first.
    while (ends[ended] <= starts[started - 1]) ended++;
    most = Math.max(most, started - ended);
  }
  return most;
}

/** The most entities in a phase at one moment of each of `bins` equal parts of x0..x1. */
export function concurrency(edges: Edges, [x0, x1]: readonly [number, number], bins: number): Uint32Array {
  const { starts, ends, origin, unit } = edges;
  const most = new Uint32Array(bins);
  const width = (x1 - x0) / bins;
  /** The first number that is a time after `t`, or one at it. */
  const after = (t: number) => Math.floor((t - origin) / unit + 1e-6) + 1;
  const from = (t: number) => Math.ceil((t - origin) / unit - 1e-6);
  let started = firstFrom(starts, from(x0));
  let ended = firstFrom(ends, from(x0));
  for (let bin = 0; bin < bins; bin++) {
    const [begun, next] = [after(x0 + bin * width), from(x0 + bin * width + width)];
    while (started < starts.length && starts[started] < begun) started++;
    while (ended < ends.length && ends[ended] < begun) ended++;
    let top = started - ended;
    while (started < starts.length && starts[started] < next) {
      const at = starts[started++];
      while (ended < ends.length && ends[ended] <= at) ended++;
      if (started - ended > top) top = started - ended;
    }
    most[bin] = top;
  }
  return most;
}

/** The place of the first of sorted numbers that is not below `number`. */
function firstFrom(numbers: Uint32Array, number: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
