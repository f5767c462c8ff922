/**
 * The data of a run as it is embedded in the page.
 *
 * `crates/lab/report/src/page_data.rs` has the same types; change both together.
 * Times are seconds since the start of the run.
 */

/** The version of the data that this page reads. */
const VERSION = 1;

/** What was sent as a run; throws when another version made it. */
export function read(sent: unknown): Run {
  const run = sent as Run;
  if (run.version !== VERSION) throw new Error(`data of version ${run.version}, not ${VERSION}`);
  return run;
}

export type Outcome = 'pass' | 'fail' | 'inconclusive' | 'invalid' | 'error';

/** How the run ended, if it did; of loads that are no part of a run, whether they say something. */
export function outcome({ verdict, underway, loads }: Run): Outcome | 'valid' | 'running' {
  if (underway) return 'running';
  if (verdict) return verdict.outcome;
  return loads.every(({ summary }) => summary.validity.valid) ? 'valid' : 'invalid';
}

/** Where a column of 32-bit numbers lies in the blob. */
export interface Column {
  at: number;
  n: number;
  /** Bytes of each number that are stored, the lowest first; the others are zero. */
  planes: number;
  coding: 'plain' | 'above' | 'left';
  /** Bits that differences keep behind their highest one; null: all. */
  digits: number | null;
}

/** Ids of entities: those of one form as bytes, the others as texts. */
export interface PackedIds {
  /** `n` ids from `at` on, one plane for each byte; `form` has the number of digits between dashes. */
  hex: { at: number; n: number; form: number[] };
  /** The entities whose ids are texts, and these as a JSON list. */
  rows: Column;
  texts: Text;
}

/** A column whose number `n` means `origin + n × unit`. */
export interface Scaled extends Column {
  origin: number;
  unit: number;
}

export interface Line {
  t: Scaled;
  v: Scaled;
}

/** Where the processor time of the systems went in the worst seconds of the run. */
export interface Profile {
  from_s: number;
  to_s: number;
  /** Why these seconds: `in which most requests of front failed`. */
  why: string;
  /** Samples a second of each processor that a system runs on. */
  per_second: number;
  samples: number;
  /** Samples of the whole run that found no room. */
  lost: number;
  systems: { system: string; samples: number }[];
  /** Why nothing or not all was sampled. */
  note: string | null;
  names: string[];
  /** Each behind the one that it is in: the place of that one (-1: none), its name, its samples. */
  tree: [number, number, number][];
}

export interface NamedLine {
  name: string;
  line: Line;
}

export interface Text {
  at: number;
  bytes: number;
}

export interface Expectation {
  that: string;
  measured: string;
  outcome: Outcome;
  note?: string;
}

export interface Step {
  name: string;
  start_s: number;
  end_s: number;
  made_s: number | null;
  failed: boolean;
  text: string;
}

/** A step that was left out, as what it builds on was missing. */
export interface SkippedStep {
  name: string;
  /** When it would have begun. */
  t_s: number;
  why: string;
}

export interface Process {
  system: string;
  cpu_cores: Line;
  rss_bytes: Line;
  fds: Line;
  threads: Line;
  /** Its processes, those that used the processor most first; at most 30. */
  each: OneProcess[];
  /** How many more there were. */
  more: number;
}

/** One process of a system. */
export interface OneProcess {
  pid: number;
  command: string;
  from_s: number;
  to_s: number;
  cpu_s: number;
  rss_bytes_max: number;
}

/** The timelines of one kind of entity, packed. */
export interface Timelines {
  name: string;
  points: string[];
  entities: number;
  origin_s: number;
  unit_s: number;
  /** Bits that the lengths of phases keep; null: they are whole. */
  digits: number | null;
  /** What the first point that an entity shows is predicted by; null: by the entity above. */
  first: Column | null;
  at: Column[];
  ids: PackedIds;
  groups: string[];
  group: Column;
  /** The log lines of some entities as JSON: `LinesOf`. */
  lines: Text | null;
}

/** What has become of one lifecycle that goes on: `crates/lab/report/src/growing/sent.rs`, which explains each field. */
export interface Grown {
  name: string;
  points: string[];
  origin_s: number;
  unit_s: number;
  entities: number;
  whole: boolean;
  rows: number;
  named: number;
  form: number[];
  odd: number[];
  texts: string[];
  groups_from: number;
  groups: string[];
  at: number;
}

/** The log lines of some entities of one kind. */
export interface LinesOf {
  /** Paths inside the run's folder. */
  files: string[];
  entities: {
    row: number;
    lines: { file: number; number: number; text: string; cut: boolean; points: number[] }[];
    /** How many more there are. */
    more: number;
  }[];
}

/** A distribution of times in seconds; null where too few samples lie beyond, and under `no_answer`. */
export interface Distribution {
  count: number;
  /** Requests without an answer, slower than all of these. */
  unanswered: number;
  /** Names of the numbers that fall among requests without an answer. */
  no_answer: string[];
  /** Least and most of numbers that the generator may have spoiled, by name. */
  /** The upper one is null where it falls among requests without an answer. */
  bounds: Record<string, [number, number | null]>;
  min: number | null;
  mean: number | null;
  stddev: number | null;
  p50: number | null;
  p75: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
  p999: number | null;
  p9999: number | null;
  max: number | null;
}

/** Requests a second within the load's own time; `good_at_best`: without the generator's part in it. */
export interface Rates {
  asked: number | null;
  sent: number;
  good: number;
  good_at_best?: number | null;
}

export interface Counts {
  planned: number;
  sent: number;
  waited: number;
  answered: number;
  refused: number;
  /** All that were tried, those of them that failed, and the share; null: nothing was tried. */
  tried: number;
  failed: number;
  failed_share: number | null;
  errors: number;
}

export interface Latency {
  intended: Distribution;
  actual: Distribution;
}

/** A rate with the interval that holds it with the probability `confidence`. */
export interface Estimate {
  rate: number;
  low: number;
  high: number;
  confidence: number;
}

/** One hold of a search for a limit. */
export interface Hold {
  rate: number;
  sent: number;
  good_rate: number;
  p50: number | null;
  p99: number | null;
  errors: number;
  in_flight: number;
  length_s: number;
  good: boolean;
  invalid: string[];
  purpose: string;
}

export interface Fit {
  lambda: number;
  alpha: number;
  beta: number;
  peak: Estimate | null;
  note: string;
}

export interface Capacity {
  slo: string;
  points: Hold[];
  knee: Estimate | null;
  physical: Estimate | null;
  limit: string;
  note: string;
  usl: { fit: Fit } | { refused: string };
}

export interface Floor {
  measured_unix_ns: number;
  ping_pong_p50: number;
  ping_pong_p99: number;
  ping_pong_spin_p50: number;
  timer_p50: number;
  timer_p99: number;
  longest_gap: number;
  gap_share: number;
  steal: number;
  clock: number;
}

/** What one load came to: `crates/lab/load/src/summary.rs`, which explains each field. */
export interface LoadSummary {
  name: string;
  target: string;
  model: string;
  arrivals: string;
  began_unix_ns: number;
  duration_s: number;
  partial: string | null;
  validity: { valid: boolean; reasons: { check: string; found: string; help: string }[]; loosened: string[] };
  /** The load's own time, in which requests were due. */
  sending_s: number;
  /** What latency leaves out at the start, as asked. */
  warm_up_s: number;
  after_end: { length_s: number; sent: number; answered: number; good: number; failed: number };
  steady: {
    from_s: number;
    to_s: number;
    state: string;
    growth: { per_s: number; low: number; high: number; confidence: number } | null;
    /** Of the steady part, where it is not the whole load. */
    numbers: { rate: Rates; requests: Counts; latency: Latency } | null;
  };
  rate: Rates;
  requests: Counts;
  latency: Latency;
  lateness: Distribution;
  statuses: Record<string, number>;
  /** Of gRPC's statuses. */
  status_names: Record<string, string>;
  errors: { phase: string; cause: string; count: number }[];
  refusals: Record<string, number>;
  bytes: { sent: number; received: number };
  connections: { opened: number; failed: number; closed: number; surplus?: number; reused: number; unserved?: number; open: number };
  generator: {
    threads: number;
    workers: number;
    cpu_s: number;
    cpu_per_request_s: number | null;
    busiest_thread: number;
    pace: string;
    steal: number;
    in_flight: number;
    in_flight_little: number;
  };
  kinds: { name: string; requests: Counts; latency: Latency; statuses: Record<string, number> }[];
  capacity: Capacity | null;
  floor: Floor | null;
  notes: string[];
}

/** A load over time, a column for each field of its slots; times from the start of the load. */
export interface PackedTimeline {
  t_s: Scaled;
  length_s: Scaled;
  planned: Scaled;
  sent: Scaled;
  good: Scaled;
  failed: Scaled;
  unanswered: Scaled;
  p50: Scaled;
  p99: Scaled;
  max: Scaled;
  in_flight: Scaled;
  backlog: Scaled;
  heat_pairs: Column;
  heat_bin: Column;
  heat_count: Scaled;
}

export interface Load {
  step: string | null;
  start_s: number;
  summary: LoadSummary;
  timeline: PackedTimeline;
  /** Seconds at the percentiles 1 − 10^(−k / points_per_decade); the last is the longest, unless requests had no answer. */
  percentiles: { points_per_decade: number; intended: number[]; actual: number[] };
}

/** What a probe came to, of one copy if it asks several. */
export interface ProbeSummary {
  name: string;
  of?: string;
  tries: number;
  failed: number;
  skipped: number;
  /** Why the newest of those that failed did. */
  error?: string;
}

export interface Probe {
  name: string;
  summaries: ProbeSummary[];
  /** Latency of the tries that went well; how long was waited for the others. */
  answered: Line;
  failed: Line;
  /** Numbers that were answered, by copy; the name is empty where one is asked. */
  values: NamedLine[];
  /** Texts that were answered, when they changed; at most 50. */
  texts: { t_s: number; of: string; text: string }[];
  /** How many more changes there were. */
  more_texts: number;
}

/** Something that a step broke, and what that did. */
export interface Fault {
  step: string;
  kind: string;
  /** The copies of systems that were hit. */
  targets: string[];
  start_s: number;
  /** Null: it was not over when the run ended. */
  end_s: number | null;
  /** How it ended. */
  text: string;
  effects: FaultEffect[];
}

/** What somebody noted who watched the run. */
export interface Note {
  t_s: number;
  text: string;
}

/** What a fault did to a load, a probe or a number of entities, in words. */
export interface FaultEffect {
  of: string;
  text: string;
  /** Null: nobody can say. */
  seen: boolean | null;
}

/** Something that limited the run, with its evidence; `crates/lab/store/src/findings.rs` explains each field. */
export interface Finding {
  kind: string;
  system: string;
  part: string;
  text: string;
  from_s: number;
  to_s: number;
  /** A share, and its interval of 95 %. */
  effect: number;
  interval: [number, number];
  /** Of what the effect is a share. */
  of: string;
  evidence: Record<string, number>;
  mark: { chart: string; name: string; phase?: number; level?: number };
  /** Place in the list of the finding that explains this one. */
  explained_by?: number;
}

/** How far a run has come that goes on. */
export interface Underway {
  now_s: number;
  doing: string;
  /** What the reader may do to it. */
  may: Act[];
  /** The rates that the reader may change. */
  rates: LoadRate[];
}

export type Act = 'mark' | 'stop' | 'rate';

export interface LoadRate {
  load: string;
  per_s: number;
}

export interface Run {
  version: number;
  name: string;
  about: string;
  seed: string | null;
  environment: {
    run_id: string;
    started_at_unix_ns: number;
    command: string[];
    headroom_version: string;
    git_commit: string | null;
    cores: number;
    cpu_model: string;
    memory_bytes: number;
    kernel: string;
    versions: Record<string, string>;
    /** Of a run that can be made again. */
    made_from?: { set?: [string, string][]; side?: string; variant?: string };
  };
  /** Null for loads that are no part of a run, and of a run that goes on. */
  verdict: {
    outcome: Outcome;
    reason?: string;
    duration_s: number;
    expectations: Expectation[];
    /** Expectations that were not judged: the machine lacked what they are about. */
    left_out?: { that: string; why: string }[];
    /** What a person should know besides. */
    notes?: string[];
  } | null;
  /** Of a run that goes on. */
  underway: Underway | null;
  steps: Step[];
  skipped: SkippedStep[];
  faults: Fault[];
  notes: Note[];
  findings: Finding[];
  /** Of a run that has ended. */
  profile: Profile | null;
  counts: { what: string; states: NamedLine[] }[];
  processes: Process[];
  loops: NamedLine[];
  probes: Probe[];
  lifecycles: Timelines[];
  loads: Load[];
  experiment: Text | null;
  files: { path: string; bytes: number }[];
  /** Parts of the run that could not be read. */
  problems: { file: string; text: string }[];
}
