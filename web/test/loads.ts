/** Small results of loads for the tests. */

import type { Result, Timeline } from '../src/data/load';
import type { Distribution, LoadSummary } from '../src/data/run';

export const times = (values: Partial<Distribution> = {}): Distribution => ({
  count: 1000,
  unanswered: 0,
  no_answer: [],
  bounds: {},
  min: null,
  mean: null,
  stddev: null,
  p50: null,
  p75: null,
  p90: null,
  p95: null,
  p99: null,
  p999: null,
  p9999: null,
  max: null,
  ...values,
});

export const summaryOf = (values: Partial<LoadSummary> = {}): LoadSummary => ({
  name: 'load',
  target: 'http://127.0.0.1/',
  model: 'open',
  arrivals: 'poisson 10/s',
  began_unix_ns: 0,
  duration_s: 3,
  partial: null,
  validity: { valid: true, reasons: [], loosened: [] },
  sending_s: 3,
  warm_up_s: 0,
  after_end: { length_s: 0, sent: 0, answered: 0, good: 0, failed: 0 },
  steady: { from_s: 0, to_s: 3, state: 'steady', growth: null, numbers: null },
  rate: { asked: 10, sent: 10, good: 10 },
  requests: { planned: 30, sent: 30, waited: 0, answered: 30, refused: 0, errors: 0, tried: 30, failed: 0, failed_share: 0 },
  latency: { intended: times(), actual: times() },
  lateness: times(),
  statuses: {},
  status_names: {},
  errors: [],
  refusals: {},
  bytes: { sent: 0, received: 0 },
  connections: { opened: 0, failed: 0, closed: 0, reused: 0, open: 0 },
  generator: {
    threads: 1,
    workers: 1,
    cpu_s: 0,
    cpu_per_request_s: null,
    busiest_thread: 0.38,
    pace: 'exact',
    steal: 0,
    in_flight: 1,
    in_flight_little: 1,
  },
  kinds: [],
  capacity: null,
  floor: null,
  notes: [],
  ...values,
});

/** Slots of a second each, from `start`; each a list of bins and counts. */
export function timelineOf(heat: [number, number][][], start = 0, length = 1): Timeline {
  const all = (of: (slot: [number, number][]) => number) => Float64Array.from(heat, of);
  const answers = all((slot) => slot.reduce((sum, [, n]) => sum + n, 0));
  let end = 0;
  return {
    t: Float64Array.from(heat, (_, i) => start + i * length),
    length: all(() => length),
    planned: answers,
    sent: answers,
    good: answers,
    failed: all(() => 0),
    p50: all(() => NaN),
    p99: all(() => NaN),
    max: all(() => NaN),
    inFlight: all(() => 1),
    backlog: all(() => 0),
    heatEnd: Int32Array.from(heat, (slot) => (end += slot.length)),
    heatBin: Int32Array.from(heat.flat(), ([bin]) => bin),
    heatCount: Float64Array.from(heat.flat(), ([, n]) => n),
  };
}

export const resultOf = (timeline: Timeline): Result => ({
  step: null,
  start: 0,
  end: 3,
  summary: summaryOf(),
  timeline,
  percentiles: { points_per_decade: 20, intended: [], actual: [] },
});
