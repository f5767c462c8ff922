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
 * with a `status` is an answer of that status. Changes of `answers` show at once. `asked`
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
