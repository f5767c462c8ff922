/** Where the time of requests goes, as the server has worked it out; and rows to show it. Pure. */

/** Times in nanoseconds; null: it cannot be said, as of too few requests. */
export interface Shares {
  mean_ns: number;
  typical_ns: number | null;
  tail_ns: number | null;
  above_ns: number | null;
  tail_share: number | null;
  variance_share: number | null;
  expected_ns: number | null;
  surplus_ns: number | null;
}

export interface Analysis {
  sentences: string[];
  notes: string[];
  entry: { service: string; path: string } | null;
  counts: { spans: number; traces: number; analysed: number; failed: number; incomplete: number };
  failures: { place: string; cause: string; requests: number }[];
  latency: { count: number; mean_ns: number | null; p50_ns: number | null; p90_ns: number | null; p99_ns: number | null };
  expected: { mean_ns: number | null; p50_ns: number | null; p90_ns: number | null; p99_ns: number | null } | null;
  tail: { quantile: number; p50_ns: number; quantile_ns: number; above_ns: number } | null;
  causes: ({ cause: string } & Shares)[];
  services: ({ name: string; visits: number; causes: Record<string, number | null> } & Shares)[];
  edges: ({ id: string; from: string; to: string; calls: number; causes: Record<string, number | null> } & Shares)[];
  concurrency: { service: string; mean: number; maximum: number; plateau: { level: number; share: number; limit: string | null } | null }[];
  noise: { lost_share: number; longest_gap_ns: number; expected_ns: number; stolen_ns: number } | null;
}

/** What causes of time are, in the order in which they are stacked. */
export const CAUSES: Record<string, string> = {
  cpu: 'work as asked',
  sleep: 'sleep as asked',
  wait: 'locks, disks and programs',
  stolen: 'work held up by others',
  queue: 'queues',
  'wire-out': 'requests on their way',
  'wire-back': 'answers on their way',
  sibling: 'parallel branches in the way',
  backoff: 'pauses before calling again',
  retry: 'calls that failed and were made again',
  timeout: 'calls that timed out and were made again',
  drop: 'calls that were dropped and made again',
  own: 'own handling',
  unseen: 'spans that are missing',
};

/** The pieces of a sentence; names stand between backticks. */
export function pieces(sentence: string): { text: string; name: boolean }[] {
  const parts = sentence.split('`');
  // One that is left open names nothing.
  if (parts.length % 2 === 0) return [{ text: sentence, name: false }];
  return parts.map((text, i) => ({ text, name: i % 2 === 1 })).filter(({ text }) => text !== '');
}

/** A line of the budget: a service's own time, or an edge's. */
export interface Line extends Shares {
  kind: 'service' | 'edge';
  /** Of the service, or the edge's id. */
  id: string;
  title: string;
  /** What most of a typical request's time here is. */
  mostly: { cause: string; share: number } | null;
}

/** Orders of the lines; the largest comes first. */
export const ORDERS = {
  surplus: (line: Line) => line.surplus_ns ?? -Infinity,
  seen: (line: Line) => line.mean_ns,
  tail: (line: Line) => line.tail_share ?? -Infinity,
  variance: (line: Line) => line.variance_share ?? -Infinity,
} as const;

export type Order = keyof typeof ORDERS;

export function budget({ services, edges }: Pick<Analysis, 'services' | 'edges'>, order: Order): Line[] {
  const lines: Line[] = [
    ...services.map((of) => ({ ...of, kind: 'service' as const, id: of.name, title: of.name, mostly: mostly(of.causes) })),
    ...edges.map((of) => ({ ...of, kind: 'edge' as const, title: `${of.from} → ${of.to}`, mostly: mostly(of.causes) })),
  ];
  const by = ORDERS[order];
  // What cannot be said comes last, in the order of what was seen.
  const compare = (a: number, b: number) => (a === b ? 0 : b - a);
  return lines.sort((a, b) => compare(by(a), by(b)) || compare(a.mean_ns, b.mean_ns));
}

function mostly(causes: Record<string, number | null>): Line['mostly'] {
  let sum = 0;
  let largest: [string, number] | null = null;
  for (const [cause, ns] of Object.entries(causes)) {
    if (ns === null || ns <= 0) continue;
    sum += ns;
    if (largest === null || ns > largest[1]) largest = [cause, ns];
  }
  return largest && { cause: largest[0], share: largest[1] / sum };
}

/** Parts of a bar that together are the whole of it. */
export interface Part {
  cause: string;
  ns: number;
  /** Where it begins and how long it is, 0 to 1. */
  from: number;
  share: number;
}

/** The causes of a mean request's time, one after the other. Those below 0 take no room. */
export function stacked(causes: Analysis['causes'], value: (of: Shares) => number | null): Part[] {
  const order = Object.keys(CAUSES);
  const rank = (cause: string) => (order.indexOf(cause) + order.length + 1) % (order.length + 1);
  const some = causes
    .map((of) => ({ cause: of.cause, ns: value(of) ?? 0 }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => rank(a.cause) - rank(b.cause));
  const sum = some.reduce((sum, { ns }) => sum + ns, 0);
  let from = 0;
  return some.map(({ cause, ns }) => {
    const part = { cause, ns, from, share: ns / sum };
    from += part.share;
    return part;
  });
}
