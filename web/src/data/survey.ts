/** What a chart of timelines must know of all of them before it draws any, and the distributions of phases. Pure functions. */

import { NONE, type Lives } from './lives';
import { place, type Pieces } from './stats';

/** How many times the 99th percentile makes an interval one that always shows. */
export const FAR = 2;
/** Bits behind the highest one that tell lengths apart; those of one bucket are compared by themselves. */
const BITS = 7;
export const BUCKETS = 32 << BITS;

export interface Survey {
  /** For each phase the length beyond which an interval always shows, in the lives' unit. */
  long: number[];
  /** Intervals that always show, the shortest first: who, from which point to which. */
  far: Outlier[];
  /** Entities that lack a point between two that they show. */
  gaps: Uint32Array;
  /** Does any phase of any entity end before it starts? */
  backwards: boolean;
  /** How many entities show every point, and how many lack each point. */
  complete: number;
  missing: number[];
}

/** The bucket of a length: those of lower buckets are shorter. */
export function bucket(length: number): number {
  if (length <= 0) return 0;
  const extra = 31 - BITS - Math.clz32(length);
  return extra <= 0 ? length : (extra << BITS) + (length >>> extra);
}

/** The shortest length of a bucket. */
export function shortest(bucket: number): number {
  if (bucket === 0) return -Infinity;
  const extra = (bucket >> BITS) - 1;
  return extra <= 0 ? bucket : ((bucket & ((1 << BITS) - 1)) | (1 << BITS)) << extra;
}

/** Finds the value at a rank without sorting: first the bucket that it is in, then its place there. */
export class Rank {
  /** Lengths of the bucket: from, and up to but not including. */
  readonly from: number;
  readonly to: number;
  private readonly place: number;
  /** How often which length comes. */
  private readonly values = new Map<number, number>();

  /** `n` lengths are in buckets. */
  constructor(counts: Uint32Array, n: number, share: number) {
    let rest = place(n, share);
    let at = 0;
    while (at < BUCKETS - 1 && rest >= counts[at]) rest -= counts[at++];
    [this.place, this.from, this.to] = [rest, shortest(at), shortest(at + 1)];
  }

  /** All of `from` to `to` must come. */
  take(length: number): void {
    this.values.set(length, (this.values.get(length) ?? 0) + 1);
  }

  found(): number {
    let rest = this.place;
    for (const length of [...this.values.keys()].sort((a, b) => a - b)) if ((rest -= this.values.get(length)!) < 0) return length;
    return NaN;
  }
}

/** An interval that always shows: far longer than others of its phase, or backwards. */
export interface Outlier {
  entity: number;
  from: number;
  to: number;
  length: number;
}

/** The order of intervals that always show. */
export const byLength = (a: Outlier, b: Outlier) => a.length - b.length || a.to - b.to || a.entity - b.entity;

export function* survey(lives: Lives): Pieces<Survey> {
  const { at, count } = lives;
  const missing: number[] = [];
  const long: number[] = [];
  const far: Outlier[] = [];
  const lacks = new Uint8Array(count);
  let backwards = false;
  for (let point = 0; point < at.length; point++, yield) {
    missing.push(lacking(at[point], count, lacks));
    if (point === 0) continue;
    const counts = new Uint32Array(BUCKETS);
    const n = distribute(at[point - 1], at[point], count, counts);
    yield;
    const found = outliers(at, point, count, new Rank(counts, n, 0.99));
    long.push(found.long);
    for (const one of found.far) far.push(one);
    if (found.backwards) backwards = true;
  }
  const gaps: number[] = [];
  let complete = 0;
  for (let entity = 0; entity < count; entity++) {
    if (lacks[entity] === 0) {
      complete++;
      continue;
    }
    let from = -1;
    let gap = false;
    for (let to = 0; to < at.length; to++) {
      const n = at[to][entity];
      if (n === NONE) continue;
      if (from >= 0 && from < to - 1) {
        gap = true;
        // Over a missing point, too, an entity may run backwards.
        const length = n - at[from][entity];
        if (length < 0) far.push({ entity, from, to, length: -length });
      }
      from = to;
    }
    if (gap) gaps.push(entity);
  }
  far.sort(byLength);
  return { long, far, gaps: Uint32Array.from(gaps), backwards, complete, missing };
}

/** Notes who lacks a point, and tells how many. */
function lacking(numbers: Int32Array, count: number, lacks: Uint8Array): number {
  let n = 0;
  for (let i = 0; i < count; i++) {
    if (numbers[i] !== NONE) continue;
    n++;
    lacks[i] = 1;
  }
  return n;
}

/** Counts lengths by bucket, and tells how many there are. */
function distribute(from: Int32Array, to: Int32Array, count: number, counts: Uint32Array): number {
  let n = 0;
  for (let i = 0; i < count; i++) {
    if (from[i] === NONE || to[i] === NONE) continue;
    counts[bucket(to[i] - from[i])]++;
    n++;
  }
  return n;
}

/** Which intervals before a point always show, and from which length on. */
function outliers(at: Int32Array[], point: number, count: number, p99: Rank): { long: number; far: Outlier[]; backwards: boolean } {
  const [begins, ends] = [at[point - 1], at[point]];
  const least = p99.from > 0 ? FAR * p99.from : 0;
  let far: Outlier[] = [];
  for (let i = 0; i < count; i++) {
    if (begins[i] === NONE || ends[i] === NONE) continue;
    const length = ends[i] - begins[i];
    if (length >= p99.from && length < p99.to) p99.take(length);
    // Whether it is long enough is known when all were seen.
    if (length < 0 || (length > least && least > 0)) far.push({ entity: i, from: point - 1, to: point, length });
  }
  const found = p99.found();
  const long = found > 0 ? FAR * found : Infinity;
  far = far.filter(({ length }) => length < 0 || length > long);
  const backwards = far.some(({ length }) => length < 0);
  for (const one of far) one.length = Math.abs(one.length);
  return { long, far, backwards };
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
export function* histograms({ at, unit }: Lives, byStart: Uint32Array, bounds: readonly [number, number], bins: number): Pieces<Histogram[]> {
  const fifth = Math.floor(byStart.length / 5);
  const scale = bins / (bounds[1] - bounds[0]);
  const found: Histogram[] = [];
  for (let phase = 0; phase < at.length - 1; phase++, yield) {
    const [from, to] = [at[phase], at[phase + 1]];
    const parts = [0, 1, 2].map(() => new Uint32Array(bins));
    let below = 0;
    let above = 0;
    for (let place = 0; place < byStart.length; place++) {
      const i = byStart[place];
      if (from[i] === NONE || to[i] === NONE) continue;
      const length = (to[i] - from[i]) * unit;
      const bin = length > 0 ? Math.floor((Math.log10(length) - bounds[0]) * scale) : -1;
      if (bin < 0) below++;
      if (bin >= bins) above++;
      const part = place < fifth ? 0 : place >= byStart.length - fifth ? 2 : 1;
      parts[part][Math.min(Math.max(bin, 0), bins - 1)]++;
    }
    const [first, middle, last] = parts;
    const most = first.reduce((top, n, bin) => Math.max(top, n + middle[bin] + last[bin]), 0);
    found.push({ first, middle, last, most, below, above });
  }
  return found;
}

/** Bounds in log10(seconds) that hold the 1st to the 99.9th percentile of all phases' lengths above 0. */
export function* logBounds({ at, unit }: Lives, rows: Uint32Array): Pieces<[number, number]> {
  const counts = new Uint32Array(BUCKETS);
  let n = 0;
  for (let phase = 0; phase < at.length - 1; phase++, yield) n += distributeSome(at[phase], at[phase + 1], rows, counts);
  if (n === 0) return [-3, 0];
  const ranks = [0.01, 0.999].map((share) => new Rank(counts, n, share));
  for (let phase = 0; phase < at.length - 1; phase++, yield) for (const rank of ranks) takeSome(at[phase], at[phase + 1], rows, rank);
  const [from, to] = ranks.map((rank) => Math.log10(rank.found() * unit));
  // At least a factor of four, and a little room, so that the last bin is not only the highest value.
  const margin = Math.max(0.02 * (to - from), (0.6 - (to - from)) / 2, 0.01);
  return [from - margin, to + margin];
}

/** Counts those lengths above 0, and tells how many there are. */
function distributeSome(from: Int32Array, to: Int32Array, rows: Uint32Array, counts: Uint32Array): number {
  let n = 0;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if (from[i] === NONE || !(to[i] > from[i])) continue;
    counts[bucket(to[i] - from[i])]++;
    n++;
  }
  return n;
}

function takeSome(from: Int32Array, to: Int32Array, rows: Uint32Array, rank: Rank): void {
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    const length = to[i] - from[i];
    if (length > 0 && from[i] !== NONE && length >= rank.from && length < rank.to) rank.take(length);
  }
}
