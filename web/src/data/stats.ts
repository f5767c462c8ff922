/** Numbers about phases, computed from the timelines. Pure functions. */

import type { Lives } from './decode';

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

/** The value at rank ceil(q × n) of sorted values; NaN when there is none. */
export function percentile(sorted: Float64Array, q: number): number {
  if (sorted.length === 0) return NaN;
  // The small margin keeps 0.9 × 10 from being 9.000000000000002.
  const rank = Math.ceil(q * sorted.length - 1e-9);
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1];
}

/** How long each of `rows` spent in `phase`; NaN: an end is missing. */
export function durations(lives: Lives, phase: number, rows: Uint32Array): Float64Array {
  const from = lives.at[phase];
  const to = lives.at[phase + 1];
  // A loop: Float64Array.from is ten times slower, and this runs before the first paint.
  const values = new Float64Array(rows.length);
  for (let k = 0; k < rows.length; k++) values[k] = to[rows[k]] - from[rows[k]];
  return values;
}

/** The values that are numbers, sorted. */
export function known(values: Float64Array): Float64Array {
  // Sorting puts what is not a number last.
  const sorted = values.slice().sort();
  let count = sorted.length;
  while (count > 0 && Number.isNaN(sorted[count - 1])) count--;
  return sorted.subarray(0, count);
}

export function phaseStats(lives: Lives, rows: Uint32Array): PhaseStats[] {
  const phases = Math.max(lives.points.length - 1, 0);
  const all = Array.from({ length: phases }, (_, phase) => durations(lives, phase, rows));
  const shares = sharesOf(all, rows.length);
  return all.map((values, phase) => {
    let worst = -1;
    let max = -Infinity;
    let negative = 0;
    let count = 0;
    for (let k = 0; k < values.length; k++) {
      const d = values[k];
      if (Number.isNaN(d)) continue;
      count++;
      if (d < 0) negative++;
      if (d > max) {
        max = d;
        worst = rows[k];
      }
    }
    const sorted = known(values);
    return {
      count,
      negative,
      p50: percentile(sorted, 0.5),
      p90: percentile(sorted, 0.9),
      p99: percentile(sorted, 0.99),
      max: percentile(sorted, 1),
      worst,
      shareOfTime: shares.time[phase],
      shareOfVariance: shares.variance[phase],
      concurrencyMax: concurrencyMax(edges(lives, phase, rows)),
    };
  });
}

function sharesOf(phases: Float64Array[], n: number): { time: number[]; variance: number[] } {
  const complete: number[] = [];
  const total = new Float64Array(n);
  for (let k = 0; k < n; k++) {
    for (const values of phases) total[k] += values[k];
    if (!Number.isNaN(total[k])) complete.push(k);
  }
  const mean = (values: Float64Array) =>
    complete.reduce((sum, k) => sum + values[k], 0) / complete.length;
  const totalMean = mean(total);
  const variance = complete.reduce((sum, k) => sum + (total[k] - totalMean) ** 2, 0);
  return {
    time: phases.map((values) => mean(values) / totalMean),
    variance: phases.map((values) => {
      const own = mean(values);
      const together = (sum: number, k: number) => sum + (values[k] - own) * (total[k] - totalMean);
      return complete.reduce(together, 0) / variance;
    }),
  };
}

/** When entities enter and leave a phase, each sorted. */
export interface Edges {
  starts: Float64Array;
  ends: Float64Array;
}

/** The edges of `phase` among `rows`; intervals that run backwards are left out. */
export function edges(lives: Lives, phase: number, rows: Uint32Array): Edges {
  const from = lives.at[phase];
  const to = lives.at[phase + 1];
  const starts = new Float64Array(rows.length);
  const ends = new Float64Array(rows.length);
  let n = 0;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if (!(to[i] > from[i])) continue;
    starts[n] = from[i];
    ends[n++] = to[i];
  }
  return { starts: starts.subarray(0, n).sort(), ends: ends.subarray(0, n).sort() };
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
export function concurrency({ starts, ends }: Edges, [x0, x1]: readonly [number, number], bins: number): Uint32Array {
  const most = new Uint32Array(bins);
  const width = (x1 - x0) / bins;
  let started = 0;
  let ended = 0;
  for (let bin = 0; bin < bins; bin++) {
    const from = x0 + bin * width;
    while (started < starts.length && starts[started] <= from) started++;
    while (ended < ends.length && ends[ended] <= from) ended++;
    most[bin] = started - ended;
    while (started < starts.length && starts[started] < from + width) {
      started++;
      while (ended < ends.length && ends[ended] <= starts[started - 1]) ended++;
      most[bin] = Math.max(most[bin], started - ended);
    }
  }
  return most;
}

/** How many entities show every point, and how many lack each point. */
export function completeness(lives: Lives): { complete: number; missing: number[] } {
  const missing = lives.at.map(() => 0);
  let complete = 0;
  for (let i = 0; i < lives.count; i++) {
    let whole = true;
    for (let point = 0; point < lives.at.length; point++) {
      if (!Number.isNaN(lives.at[point][i])) continue;
      missing[point]++;
      whole = false;
    }
    if (whole) complete++;
  }
  return { complete, missing };
}

/** Of the groups the one whose median is highest. */
export interface SlowestGroup {
  group: number;
  p50: number;
}

/** Fewer entities than this say little about their group. */
const FEWEST = 5;

/** For each phase the slowest group among `rows`; null where less than two groups have enough entities. */
export function slowestGroups(lives: Lives, rows: Uint32Array): (SlowestGroup | null)[] {
  const members = lives.groups.map((): number[] => []);
  for (const row of rows) members[lives.group[row]]?.push(row);
  const groups = members.map((of) => Uint32Array.from(of));
  return lives.points.slice(1).map((_, phase) => {
    const medians = groups
      .map((of, group) => ({ group, values: known(durations(lives, phase, of)) }))
      .filter(({ values }) => values.length >= FEWEST)
      .map(({ group, values }) => ({ group, p50: percentile(values, 0.5) }));
    return medians.length < 2 ? null : medians.reduce((worst, one) => (one.p50 > worst.p50 ? one : worst));
  });
}

/** Counts of the first 20 %, of the middle, and of the last 20 % of entities by start. */
export interface Histogram {
  first: Uint32Array;
  middle: Uint32Array;
  last: Uint32Array;
  /** Highest sum over the three. */
  most: number;
  /** How many in the outermost bins lie beyond the bounds. */
  below: number;
  above: number;
}

/**
 * Distributions of each phase over bins of equal width in log10(seconds).
 *
 * Values outside the bounds, zero and negative ones among them, count in the outermost bins.
 */
export function histograms(
  lives: Lives,
  byStart: Uint32Array,
  bounds: readonly [number, number],
  bins: number,
): Histogram[] {
  const fifth = Math.floor(byStart.length / 5);
  const scale = bins / (bounds[1] - bounds[0]);
  return lives.points.slice(1).map((_, phase) => {
    const parts = [0, 1, 2].map(() => new Uint32Array(bins));
    let below = 0;
    let above = 0;
    durations(lives, phase, byStart).forEach((d, place) => {
      if (Number.isNaN(d)) return;
      const bin = d > 0 ? Math.floor((Math.log10(d) - bounds[0]) * scale) : -1;
      if (bin < 0) below++;
      if (bin >= bins) above++;
      const part = place < fifth ? 0 : place >= byStart.length - fifth ? 2 : 1;
      parts[part][Math.min(Math.max(bin, 0), bins - 1)]++;
    });
    const [first, middle, last] = parts;
    const most = first.reduce((top, n, bin) => Math.max(top, n + middle[bin] + last[bin]), 0);
    return { first, middle, last, most, below, above };
  });
}

/** Bounds in log10(seconds) that hold the 1st to the 99.9th percentile of all phases' durations above 0. */
export function logBounds(lives: Lives, rows: Uint32Array): [number, number] {
  const phases = Math.max(lives.points.length - 1, 0);
  const all = new Float64Array(phases * rows.length);
  for (let phase = 0; phase < phases; phase++) all.set(durations(lives, phase, rows), phase * rows.length);
  const some = known(all).filter((d) => d > 0);
  if (some.length === 0) return [-3, 0];
  const [from, to] = [0.01, 0.999].map((q) => Math.log10(percentile(some, q)));
  // At least a factor of four, and a little room, so that the last bin is not only the highest value.
  const margin = Math.max(0.02 * (to - from), (0.6 - (to - from)) / 2, 0.01);
  return [from - margin, to + margin];
}
