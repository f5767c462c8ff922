/**
 * What the control server of a graph answers. Times are nanoseconds, rates per second,
 * ids hexadecimal texts; null: nothing was measured.
 */

export interface Topology {
  name: string;
  seed: number;
  revision: number;
  entry: string | null;
  services: Service[];
  edges: Edge[];
  instances: Instance[];
  /** How it is placed and on what; its keys depend on the way it was started. */
  deployment: unknown;
}

export interface Service {
  name: string;
  protocol: 'http1' | 'http2' | 'grpc';
  replicas: number;
  workers: number;
  cpus: number[];
  cpu_limit: number | null;
  memory_limit: number | null;
  endpoints: { path: string; steps: Step[] }[];
}

export type Step = { id: number } & (
  | { work: string }
  | { call: string | null; edge: string | null; path: string | null; probability: number; wait: boolean }
  | { sequence: Step[] }
  | { parallel: Step[]; join: 'all' | number }
);

export interface Edge {
  /** `FROM>TO`. */
  id: string;
  from: string;
  to: string;
  connections: number;
  /** Each call makes a connection of its own. */
  cold: boolean;
}

export interface Instance {
  service: string;
  replica: number;
  address: string;
  pid: number;
  admin: string | null;
}

export interface Latency {
  count: number;
  mean_ns: number | null;
  p50_ns: number | null;
  p90_ns: number | null;
  p99_ns: number | null;
}

export interface Stats {
  at_unix_ms: number;
  /** How long a time it really covers. */
  seconds: number;
  revision: number;
  services: ServiceStats[];
  edges: EdgeStats[];
}

export interface ServiceStats {
  name: string;
  rate: number;
  errors: number;
  dropped: number;
  in_flight: number;
  connections: number;
  queue_ns: number | null;
  latency: Latency | null;
  work: WorkStats[];
}

export interface WorkStats {
  step: number;
  kind: string;
  rate: number;
  failures: number;
  wall: Latency | null;
  cpu_ns: number | null;
  stolen_ns: number | null;
  queue_ns: number | null;
}

export interface EdgeStats {
  id: string;
  from: string;
  to: string;
  rate: number;
  errors: number;
  retries: number;
  in_flight: number;
  waiting: number;
  open: number;
  opened: number;
  queue_ns: number | null;
  latency: Latency | null;
  causes: Record<string, number>;
}

/** A trace of the list: its root. */
export interface TraceLine {
  trace: string;
  service: string;
  name: string;
  start_unix_ms: number;
  duration_ns: number;
  status: number;
  cause: string;
  spans: number;
}

export interface Trace {
  trace: string;
  start_unix_ms: number;
  spans: Span[];
}

export interface Span {
  id: string;
  parent: string | null;
  kind: 'server' | 'client' | 'work' | 'internal';
  service: string;
  name: string;
  /** Client: who was called. */
  peer: string;
  /** From the first span of the trace on. */
  start_ns: number;
  end_ns: number;
  cpu_ns: number;
  queue_ns: number;
  status: number;
  attempt: number;
  revision: number;
  cause: string;
}
