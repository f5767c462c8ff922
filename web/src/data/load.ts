/** The results of loads: decoded, grouped, and what can be said of them. Pure functions. */

import { count, duration, percent } from '../chart/scales';
import { column, scaled, type Points } from './decode';
import { NO_ANSWER, WITHHELD } from './words';
import type { Distribution, Expectation, Load, LoadSummary, PackedTimeline, Rates } from './run';

/** A load over time; a value for each slot. Times are those of the page's axis. */
export interface Timeline {
  t: Float64Array;
  length: Float64Array;
  planned: Float64Array;
  sent: Float64Array;
  good: Float64Array;
  failed: Float64Array;
  /** NaN: nothing ended. Infinity: it falls among requests without an answer. */
  p50: Float64Array;
  p99: Float64Array;
  max: Float64Array;
  inFlight: Float64Array;
  backlog: Float64Array;
  /** For each slot where its bins end in the next two. */
  heatEnd: Int32Array;
  heatBin: Int32Array;
  heatCount: Float64Array;
}

/** One result, decoded. */
export interface Result {
  step: string | null;
  start: number;
  end: number;
  summary: LoadSummary;
  timeline: Timeline;
  percentiles: Load['percentiles'];
}

/** The results of loads of the same name, in order of time. */
export interface Group {
  name: string;
  results: Result[];
}

export function groups(blob: Uint8Array, loads: Load[]): Group[] {
  const found = new Map<string, Result[]>();
  for (const { step, start_s, summary, timeline, percentiles } of loads) {
    const result = {
      step,
      start: start_s,
      end: start_s + summary.duration_s,
      summary,
      timeline: timelineOf(blob, timeline, start_s),
      percentiles,
    };
    found.set(summary.name, [...(found.get(summary.name) ?? []), result]);
  }
  return [...found].map(([name, results]) => ({ name, results }));
}

/**
 * The result that a reader looks for first: that of a search; that of a step in which an expectation about
 * this load does not hold; that of a step which an expectation names; else the first that says something
 * about the target, a step called warm-up last.
 */
export function firstShown(name: string, results: Result[], expectations: Expectation[]): number {
  const own = new RegExp(`(?<![\\w-])${escaped(name)}(?![\\w-])`);
  // Names of steps are in quotes, and may have that of a load in them.
  const about = ({ that }: Expectation) => own.test(that.replace(/'[^']*'/g, ''));
  const named = (some: Expectation[]) => (result: Result) =>
    result.step !== null && some.some(({ that }) => that.includes(`'${result.step}'`));
  const ours = expectations.filter(about);
  const warms = ({ step }: Result) => /warm.?up/i.test(step ?? '');
  const ranks: ((result: Result) => boolean)[] = [
    ({ summary }) => summary.capacity !== null,
    named(ours.filter(({ outcome }) => outcome === 'fail')),
    named(ours.filter(({ outcome }) => outcome !== 'pass')),
    named(ours),
    (result) => result.summary.validity.valid && !warms(result),
    (result) => !warms(result),
  ];
  const found = ranks.map((rank) => results.findIndex(rank)).find((index) => index >= 0);
  return found ?? 0;
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

function timelineOf(blob: Uint8Array, packed: PackedTimeline, start: number): Timeline {
  const of = (name: Exclude<keyof PackedTimeline, 'heat_pairs' | 'heat_bin'>) => scaled(blob, packed[name]);
  let end = 0;
  const unanswered = of('unanswered');
  const told = (name: 'p50' | 'p99' | 'max') =>
    of(name).map((value, slot) => (Number.isNaN(value) && unanswered[slot] > 0 ? Infinity : value));
  return {
    t: of('t_s').map((t) => t + start),
    length: of('length_s'),
    planned: of('planned'),
    sent: of('sent'),
    good: of('good'),
    failed: of('failed'),
    p50: told('p50'),
    p99: told('p99'),
    max: told('max'),
    inFlight: of('in_flight'),
    backlog: of('backlog'),
    heatEnd: column(blob, packed.heat_pairs).map((pairs) => (end += pairs)),
    heatBin: column(blob, packed.heat_bin),
    heatCount: of('heat_count'),
  };
}

/** A line through the slots of several results, in which values hold; it breaks between results. */
export function line(results: Result[], of: (timeline: Timeline, slot: number) => number): Points {
  const [times, values]: number[][] = [[], []];
  for (const { timeline } of results) {
    const { t, length } = timeline;
    t.forEach((start, slot) => {
      times.push(start);
      values.push(of(timeline, slot));
    });
    if (t.length === 0) continue;
    times.push(t[t.length - 1] + length[t.length - 1]);
    values.push(NaN);
  }
  return { t: Float64Array.from(times), v: Float64Array.from(values) };
}

/** A slot shorter than this share of the one before it is no whole one. */
const PARTIAL = 0.75;

/** How long a slot counts: a few requests in a fraction of a second are no rate. */
export function weighed({ length }: Timeline, slot: number): number {
  const before = slot > 0 ? length[slot - 1] : 0;
  return length[slot] < PARTIAL * before ? before : length[slot];
}

/**
 * How many a second, slot by slot. A partial slot takes a part of the one before it; what
 * came after the load's own time is no rate.
 */
export function perSecond(results: Result[], field: 'planned' | 'sent' | 'good' | 'failed'): Points {
  const ends = new Map(results.map(({ timeline, start, summary }) => [timeline, start + summary.sending_s]));
  return line(results, (timeline, slot) => {
    const { t, length } = timeline;
    const count = timeline[field];
    if (length[slot] <= 0 || t[slot] > ends.get(timeline)! - 1e-5) return NaN;
    const whole = weighed(timeline, slot);
    const missing = whole - length[slot];
    return (count[slot] + (missing > 0 ? (count[slot - 1] * missing) / whole : 0)) / whole;
  });
}

/** The percentiles of a distribution that may be told, in order. */
export const PERCENTILES = [
  ['p50', 0.5],
  ['p75', 0.75],
  ['p90', 0.9],
  ['p95', 0.95],
  ['p99', 0.99],
  ['p999', 0.999],
  ['p9999', 0.9999],
] as const;

/** `p99.9` for 0.999. */
export const percentileName = (q: number) => `p${Number((100 * q).toPrecision(6))}`;

/** Differences below these say nothing. */
const GAP_SHARE = 0.1;
const GAP_S = 100e-6;

/** What the difference between latency from intended and from actual send says, in a sentence or two. */
export function gap({ model, requests, lateness, latency: { intended, actual } }: LoadSummary): string {
  if (model === 'closed') {
    return 'A closed loop has no intended send time: when the target stalls, its users stop asking. Users who do not wait for one another would see longer times than these.';
  }
  const both = PERCENTILES.flatMap(([name, q]) => {
    const [felt, took] = [intended[name], actual[name]];
    return felt === null || took === null ? [] : [{ q, felt, took }];
  });
  if (both.length === 0) return 'There are too few answers to compare the two.';
  const apart = both.filter(({ felt, took }) => felt - took > Math.max(GAP_S, GAP_SHARE * felt));
  if (apart.length === 0) {
    const late = [...PERCENTILES].reverse().find(([name]) => lateness[name] !== null && lateness[name] > GAP_S);
    return late === undefined
      ? 'The two agree: requests were sent when they were due.'
      : `The two agree to a tenth. The generator was late itself: ${percentileName(late[1])} of that is ${duration(lateness[late[0]]!)}.`;
  }
  const { q, felt, took } = apart.reduce((worst, one) => (one.felt - one.took > worst.felt - worst.took ? one : worst));
  return (
    `They part at ${percentileName(apart[0].q)}. At ${percentileName(q)} an answer came ${duration(felt)} after it was due and ` +
    `${duration(took)} after it was asked for: ${heldUp({ requests, lateness }, q, felt - took)}`
  );
}

/** What requests waited for before they were sent, where so much passed at a percentile. */
function heldUp({ requests, lateness }: Pick<LoadSummary, 'requests' | 'lateness'>, q: number, passed: number): string {
  // Of those that waited for a connection no lateness is known.
  const held = requests.sent - lateness.count;
  const [name] = PERCENTILES.find(([, own]) => own === q)!;
  const late = (lateness[name] ?? lateness.max ?? 0) >= passed / 2;
  const enough = held >= (1 - q) * requests.sent;
  if (held > 0 && !enough && !late) {
    return 'these are other requests, for too few waited to be sent, and none was sent as late.';
  }
  if (held <= 0 || (late && !enough)) {
    return 'the generator was late itself, and nothing held the requests up. The latter is what the target took.';
  }
  const waited = 'requests waited to be sent, because those before them were slow';
  return late ? `${waited}, and the generator was late itself.` : `${waited}. Users feel the former.`;
}

/** Checks that blame the generator or its machine. */
const GENERATOR = new Set(['generator-late', 'under-sent', 'steal', 'no-ports', 'no-descriptors', 'little', 'worker-lost']);

/** Was the generator fit for this load, whose slots are so long, and what shows it. */
export function health(summary: LoadSummary, slots: ArrayLike<number> = []): { ok: boolean; facts: string[] } {
  const { validity, generator, lateness } = summary;
  const late = lateness.p99 ?? lateness.max;
  return {
    ok: !validity.reasons.some(({ check }) => GENERATOR.has(check)),
    facts: [
      `busiest thread ${percent(generator.busiest_thread)} of a core`,
      ...(late === null ? [] : [`${lateness.p99 === null ? 'all' : '99 % of'} sends at most ${duration(late)} late`]),
      ...(generator.cpu_per_request_s === null ? [] : [`${duration(generator.cpu_per_request_s)} of processor time a request`]),
      steal(summary, slots),
    ],
  };
}

/** The limit of steal is one for the whole load, of which this is the worst part. */
function steal({ generator, duration_s }: LoadSummary, slots: ArrayLike<number>): string {
  const share = percent(generator.steal);
  if (generator.steal <= 0) return `steal ${share}`;
  const longest = Array.from(slots).reduce((most, one) => Math.max(most, one), 0);
  return `steal up to ${share} in the worst ${duration(longest || duration_s)}`;
}

/** What is said of answers that came when the load was over already. */
export function afterEnd(answered: number): string {
  return answered === 1
    ? '1 answer came after the end: it counts, but no rate has it.'
    : `${count(answered)} answers came after the end: they count, but no rate has them.`;
}

/** What is said of a rate that may have been higher without the generator's part in it; null: nothing. Of users' rates a note does. */
export function atBest({ asked, good, good_at_best }: Rates): string | null {
  const told = asked !== null && good_at_best != null && good_at_best > 1.01 * good;
  return told ? `Good answers may have been up to ${rate(good_at_best)} but for the generator, which was late.` : null;
}

/** A number of things, or a mean of it, with the digits that the terminal shows: `4,999`, `12.5`; a dash for no value. */
export function quantity(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const shown = value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return shown.toLocaleString('en', { maximumSignificantDigits: 21 });
}

/** So many a second: `4,999/s`, `12.5/s`; a dash for no value. */
export const rate = (value: number) => (Number.isFinite(value) ? `${quantity(value)}/s` : '–');

/** A share as the terminal shows it: `0 %`, `0.012 %`, `26.4 %`; all and nothing are only exactly that. */
export function smallShare(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const extreme = (value: number) => value === 0 || value === 100;
  for (let digits = 3; digits <= 17; digits++) {
    const shown = Number((100 * share).toPrecision(digits));
    if (extreme(shown) === extreme(100 * share)) return `${shown} %`;
  }
  return `${100 * share} %`;
}

/** The share of requests that failed, as every result has it. */
export const failedShare = ({ requests: { failed_share } }: LoadSummary) => failed_share ?? NaN;

/** The numbers of a distribution. */
export type NumberOf = Exclude<keyof Distribution, 'no_answer' | 'bounds'>;

/** A number of a distribution: NaN where it is not told, Infinity where it falls among requests without an answer. */
export const known = (distribution: Distribution, name: NumberOf) =>
  distribution.no_answer.includes(name) ? Infinity : (distribution[name] ?? NaN);

/** A latency; an infinite one is how long an answer took that never came. */
export const latency = (seconds: number) => (seconds === Infinity ? NO_ANSWER : duration(seconds));

/** A number of a distribution as it is told: why not, where it is not. */
export function formatted(distribution: Distribution, name: NumberOf): string {
  const value = known(distribution, name);
  return Number.isNaN(value) && distribution.bounds[name] ? WITHHELD : latency(value);
}

/** Between which two values those numbers lie that the generator may have spoiled; empty: none. */
export function doubtful({ bounds }: Distribution): string {
  const order = ['mean', ...PERCENTILES.map(([name]) => name as string), 'max'];
  const shown = PERCENTILES.reduce<Record<string, string>>((names, [name, q]) => ({ ...names, [name]: percentileName(q) }), {});
  const some = order.filter((name) => bounds[name]);
  return some.map((name) => `${shown[name] ?? name} ${duration(bounds[name][0])} to ${latency(bounds[name][1] ?? Infinity)}`).join(', ');
}
