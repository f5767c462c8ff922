/**
 * The data of a run as it is embedded in the page.
 *
 * `crates/lab/report/src/page_data.rs` has the same types; change both together.
 * Times are seconds since the start of the run.
 */

export type Outcome = 'pass' | 'fail' | 'inconclusive' | 'invalid' | 'error';

/** Where a column of 32-bit numbers lies in the blob. */
export interface Column {
  at: number;
  n: number;
  coding: 'plain' | 'above' | 'left';
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

export interface Process {
  system: string;
  cpu_cores: Line;
  rss_bytes: Line;
  fds: Line;
  threads: Line;
}

/** The timelines of one kind of entity, packed. */
export interface Timelines {
  name: string;
  points: string[];
  entities: number;
  origin_s: number;
  unit_s: number;
  at: Column[];
  ids: Text;
  groups: string[];
  group: Column;
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
  };
  verdict: {
    outcome: Outcome;
    reason?: string;
    duration_s: number;
    expectations: Expectation[];
  };
  steps: Step[];
  counts: { what: string; states: NamedLine[] }[];
  processes: Process[];
  loops: NamedLine[];
  lifecycles: Timelines[];
  experiment: Text | null;
  files: { path: string; bytes: number }[];
}
