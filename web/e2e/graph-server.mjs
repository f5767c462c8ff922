/**
 * A control server whose answers are known: those of a small graph, recorded from
 * `headroom graph up`, or of a made one of any size. It serves the built page with its policy.
 */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const dist = new URL('../dist/', import.meta.url);
const html = readFileSync(new URL('graph.html', dist));
const policy = readFileSync(new URL('graph.policy', dist), 'utf8');

/**
 * Serves `answers`: for each path a value, or a function of the query that gives one; one
 * with a `status` is an answer of that status; null is none at all. Changes of `answers` show at once. `asked`
 * counts by path.
 */
export async function serve(answers) {
  const asked = {};
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy });
      response.end(html);
      return;
    }
    asked[url.pathname] = (asked[url.pathname] ?? 0) + 1;
    const found = answers[url.pathname] ?? { status: 404, error: `nothing is at ${url.pathname}` };
    const body = typeof found === 'function' ? found(url.searchParams) : found;
    if (body === null) {
      request.socket.destroy();
      return;
    }
    const { status = 200 } = typeof body === 'object' ? body : {};
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  return {
    url: `http://127.0.0.1:${port}/`,
    asked,
    answers,
    stop: () => (server.closeAllConnections(), new Promise((done) => server.close(done))),
  };
}

const latency = (p50_ns, count = 1000) => ({ count, mean_ns: p50_ns * 1.2, p50_ns, p90_ns: p50_ns * 2, p99_ns: p50_ns * 5 });

/** Answers of a graph of so many services, every one but the first called by one before it, and more calls. */
export function made(services, more) {
  let state = 7;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const names = Array.from({ length: services }, (_, i) => `service-${i}`);
  const pairs = new Set();
  for (let i = 1; i < services; i++) pairs.add(`${Math.floor(next() * Math.min(i, 60))}>${i}`);
  for (let i = 0; i < more; i++) {
    const [a, b] = [Math.floor(next() * services), Math.floor(next() * services)];
    if (a < b) pairs.add(`${a}>${b}`);
  }
  const edges = [...pairs].map((pair) => pair.split('>').map((i) => names[i]));
  const rate = () => 10 ** (3 * next());
  const errors = (rate) => (next() < 0.9 ? 0 : rate * next() * 0.2);
  const topology = {
    name: `made-${services}`, seed: 7, revision: 1, entry: names[0], deployment: { mode: 'process', warnings: [] },
    services: names.map((name) => ({
      name, protocol: 'http1', replicas: 1, workers: 2, cpus: [], cpu_limit: null, memory_limit: null,
      endpoints: [{ path: '/', steps: [{ id: 0, work: 'cpu' }] }],
    })),
    edges: edges.map(([from, to]) => ({ id: `${from}>${to}`, from, to, connections: 64, cold: false })),
    instances: names.map((service, i) => ({ service, replica: 0, address: `127.0.0.1:${20000 + i}`, pid: 1, admin: null })),
  };
  const figures = () => {
    const now = rate();
    return { rate: now, errors: errors(now), in_flight: Math.floor(now / 100), queue_ns: 30000, latency: latency(1e5 * (1 + 20 * next())) };
  };
  const stats = () => ({
    at_unix_ms: Date.now(), seconds: 5, revision: 1,
    services: names.map((name) => ({ name, dropped: 0, connections: 4, work: [], ...figures() })),
    edges: topology.edges.map(({ id, from, to }) => ({ id, from, to, retries: 0, waiting: 0, open: 4, opened: 0, causes: {}, ...figures() })),
  });
  return {
    '/topology': topology,
    '/stats': stats,
    '/traces': { next: 0, traces: [] },
    '/analysis': { status: 503, error: 'there are no traces yet' },
  };
}

/** An analysis of the made graph in which everything can be said. */
export function analysed() {
  const shares = (mean, expected, tail, variance) => ({
    mean_ns: mean, typical_ns: 0.9 * mean, tail_ns: 1.2 * mean, above_ns: 0.3 * mean, tail_share: tail, variance_share: variance,
    expected_ns: expected, surplus_ns: expected === null ? null : mean - expected,
  });
  return {
    sentences: ['p50 4.8 ms: 3.5 ms work as asked, 0.9 ms in three hops.', 'p99 is 8.0 ms above p50: 81 % of that is processor time taken from service-1 by others.'],
    notes: ['p99.9 is not said: 2,000 requests are too few, 10,000 are needed'],
    entry: { service: 'service-0', path: '/', requests: 2000 },
    counts: { spans: 20000, traces: 2100, analysed: 2000, failed: 100, incomplete: 0 },
    failures: [{ place: 'service-0>service-1', cause: 'timeout', requests: 100 }],
    latency: { count: 2000, mean_ns: 5.2e6, p50_ns: 4.8e6, p90_ns: 7e6, p99_ns: 12.8e6 },
    expected: { count: 2000, mean_ns: 4.5e6, p50_ns: 4.3e6, p90_ns: 5.2e6, p99_ns: 9.1e6 },
    tail: { quantile: 0.99, p50_ns: 4.8e6, quantile_ns: 12.8e6, above_ns: 8e6 },
    causes: [
      { cause: 'wire-out', ...shares(4e5, 3e5, 0.02, 0.02) }, { cause: 'cpu', ...shares(2e6, 2e6, 0.05, 0.1) },
      { cause: 'stolen', ...shares(9e5, null, 0.81, 0.7) }, { cause: 'sleep', ...shares(1.5e6, 1.5e6, 0, 0) },
      { cause: 'wire-back', ...shares(4e5, 4e5, 0.02, 0.02) },
    ],
    services: [
      { name: 'service-0', visits: 1, causes: { cpu: 5e5, own: 2e4 }, ...shares(7e5, 5e5, 0.02, 0.03) },
      { name: 'service-1', visits: 1, causes: { cpu: 6e5, sleep: 1e6, stolen: 3e5 }, ...shares(1.9e6, 1.8e6, 0.7, 0.6) },
      { name: 'service-2', visits: 0.3, causes: {}, ...shares(3e5, null, null, -0.01) },
    ],
    edges: [{ id: 'service-0>service-1', from: 'service-0', to: 'service-1', calls: 1, causes: { 'wire-out': 9e4, queue: 1e4 }, ...shares(1e5, 1.5e5, 0.01, 0.01) }],
    concurrency: [{ service: 'service-1', mean: 1.8, maximum: 2, plateau: { level: 2, share: 0.6, limit: 'workers of service-1' } }],
    noise: { lost_share: 0.035, longest_gap_ns: 4e6, expected_ns: 1e5, stolen_ns: 9e5 },
  };
}
