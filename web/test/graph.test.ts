import { describe, expect, it } from 'vitest';
import type { Rgb } from '../src/chart/palette';
import { budget, pieces, stacked, type Analysis, type Shares } from '../src/graph/data/analysis';
import { facts, refusal, warnings } from '../src/graph/data/deployment';
import { errorShare, errorStep, figures, rate, time } from '../src/graph/data/figures';
import { script } from '../src/graph/data/script';
import { edgeWidth, errorColours } from '../src/graph/data/shade';
import type { EdgeStats, Latency, Topology } from '../src/graph/data/shapes';
import { along, curves, distance } from '../src/graph/draw/curves';
import { hit, scene, step } from '../src/graph/draw/scene';
import { luminance, oklab, SIGHT } from './sight';

const latency = (count: number): Latency => ({ count, mean_ns: 2e6, p50_ns: 1.5e6, p90_ns: 3e6, p99_ns: 9e6 });
const edge = (change: Partial<EdgeStats>): EdgeStats => ({
  id: 'a>b', from: 'a', to: 'b', rate: 100, errors: 1, retries: 0, in_flight: 2, waiting: 0,
  open: 4, opened: 0, queue_ns: null, latency: latency(500), causes: {}, ...change,
});

describe('figures', () => {
  it('are shares, and percentiles of enough answers', () => {
    expect(figures(edge({}))).toEqual({ rate: 100, errors: 0.01, p50_ns: 1.5e6, p99_ns: 9e6, in_flight: 2 });
    expect(figures(edge({ latency: latency(99) })).p99_ns).toBeNull();
    expect(figures(edge({ latency: null })).p50_ns).toBeNull();
  });

  it('say nothing where nothing was measured', () => {
    expect(figures(undefined).errors).toBeNull();
    expect(figures(edge({ rate: 0, errors: 0 })).errors).toBeNull();
    // The attempts began before the stretch.
    expect(figures(edge({ rate: 0, errors: 2 })).errors).toBe(1);
    expect(figures(edge({ rate: 1, errors: 2 })).errors).toBe(1);
  });

  it('are said as people read them', () => {
    expect([0, 0.44, 9.94, 9.96, 12345.6, NaN].map(rate)).toEqual(['0/s', '0.4/s', '9.9/s', '10/s', '12,346/s', '–']);
    expect([0.016, 0.0499, 0.05].map(rate)).toEqual(['0.02/s', '0.05/s', '0.1/s']);
    expect([1.27e6, null, undefined, 0].map(time)).toEqual(['1.27 ms', '–', '–', '0 s']);
    expect([null, 0, 0.0001, 0.5, 0.9999, 1].map(errorShare)).toEqual(['–', '0.0 %', '< 0.1 %', '50.0 %', '> 99.9 %', '100.0 %']);
  });
});

describe('colours of failures', () => {
  const parse = (text: string) => text.match(/\d+/g)!.map(Number) as Rgb;

  it('have steps', () => expect([null, 0, 0.001, 0.01, 0.1, 1].map(errorStep)).toEqual([0, 0, 1, 2, 3, 3]));

  it.each(['light', 'dark'] as const)('go away from the background, step by step (%s)', (theme) => {
    const bright = errorColours(theme).map((colour) => luminance(parse(colour)));
    for (let i = 1; i < bright.length; i++) {
      if (theme === 'light') expect(bright[i]).toBeLessThan(bright[i - 1]);
      else expect(bright[i]).toBeGreaterThan(bright[i - 1]);
    }
  });

  it.each(Object.keys(SIGHT))('differ from one another (%s)', (sight) => {
    for (const theme of ['light', 'dark'] as const) {
      const seen = errorColours(theme).map((colour) => oklab(parse(colour), SIGHT[sight]));
      for (let i = 0; i < seen.length; i++) {
        for (let j = 0; j < i; j++) expect(Math.hypot(...seen[i].map((c, k) => c - seen[j][k]))).toBeGreaterThan(0.08);
      }
    }
  });
});

it('edges grow with their rate, within bounds', () => {
  const widths = [0, 1e-9, 1, 10, 100, 1000].map((rate) => edgeWidth(rate, 1000));
  expect(widths).toEqual([...widths].sort((a, b) => a - b));
  expect([widths[0], widths.at(-1)]).toEqual([1, 6]);
  expect(edgeWidth(0, 0)).toBe(1);
});

describe('a scene', () => {
  const names = ['b', 'c', 'entry', 'd'];
  const topology = {
    entry: 'entry',
    services: names.map((name) => ({ name })),
    edges: [['entry', 'b'], ['entry', 'c'], ['b', 'd'], ['c', 'd'], ['c', 'gone']].map(([from, to]) => ({ id: `${from}>${to}`, from, to })),
  } as unknown as Topology;
  const made = scene(topology, { width: 1200, height: 500 });
  const at = (name: string) => made.place.get(name)!;

  it('begins with the entry and leaves out edges without an end', () => {
    expect(made.names[0]).toBe('entry');
    expect(made.edges.map(({ id }) => id)).toEqual(['entry>b', 'entry>c', 'b>d', 'c>d']);
    expect(made.layout.layerOf[at('d')]).toBe(2);
  });

  it('knows what is at a point', () => {
    const { x, y } = made.layout;
    expect(hit(made, x[at('b')] + 5, y[at('b')] - 5, 5)).toEqual({ kind: 'service', place: at('b') });
    const middle = along(made.edges[2].curves[0], 0.4);
    expect(hit(made, middle.x, middle.y + 2, 5)).toEqual({ kind: 'edge', place: 2 });
    expect(hit(made, -500, -500, 5)).toBeNull();
  });

  it('is walked along calls', () => {
    const { y } = made.layout;
    const [upper, lower] = y[at('b')] < y[at('c')] ? ['b', 'c'] : ['c', 'b'];
    const walk = (from: string, ...keys: string[]) => made.names[keys.reduce((now, key) => step(made, now, key), at(from))];
    expect(walk('entry', 'ArrowRight', 'ArrowRight')).toBe('d');
    expect(walk('d', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft')).toBe('entry');
    expect(walk(upper, 'ArrowDown')).toBe(lower);
    expect(walk(lower, 'ArrowUp', 'ArrowUp')).toBe(upper);
  });
});

it('a curve goes through its stops; its distance is measured', () => {
  const way = curves([{ x: 0, y: 0, towards: 1 }, { x: 100, y: 0, towards: 1 }, { x: 200, y: 50, towards: 1 }]);
  expect(way).toHaveLength(2);
  expect([along(way[0], 0), along(way[1], 1)]).toEqual([{ x: 0, y: 0 }, { x: 200, y: 50 }]);
  expect(distance(way, { x: 50, y: 3 }, 10)).toBeCloseTo(3, 3);
  expect(distance(way, { x: 50, y: 300 }, 10)).toBe(10);
});

it('a script is told step by step', () => {
  const call = { call: 'b', edge: 'a>b', path: '/x', probability: 0.3, wait: false };
  expect(
    script([
      { id: 1, work: 'cpu' },
      { id: 2, parallel: [{ id: 3, ...call }, { id: 4, sequence: [{ id: 5, work: 'sleep' }] }], join: 1 },
    ]).map(({ text, depth }) => ' '.repeat(depth) + text),
  ).toEqual([
    'work: cpu',
    'at the same time, waiting for 1 of 2:',
    ' call b at /x in 30.0 % of requests without waiting',
    ' one after the other:',
    '  work: sleep',
  ]);
  expect(script([])).toEqual([{ text: 'answers at once', depth: 0 }]);
  expect(script(Array.from({ length: 300 }, (_, id) => ({ id, work: 'cpu' }))).at(-1)!.text).toBe('and 100 more steps');
});

it('a deployment is any tree', () => {
  const tree = {
    mode: 'process', warnings: ['no cgroup'], profile: { file: 'a.toml', refused: 'line 3' },
    machine: { cpus: 2, cpu_model: 'x', load: { m1: 0.5 }, none: null, list: [1, 2], deep: [{ a: 1 }] },
  };
  expect(facts(tree)).toEqual([
    ['mode', 'process'], ['machine · cpus', '2'], ['machine · cpu model', 'x'], ['machine · load · m1', '0.5'],
    ['machine · list', '1, 2'], ['machine · deep · 1 · a', '1'], ['profile', 'a.toml'],
  ]);
  expect([refusal(tree), warnings(tree)]).toEqual(['line 3', ['no cgroup']]);
  for (const odd of [null, undefined, 3, 'x', [], {}]) expect([refusal(odd), warnings(odd), facts(odd)]).toEqual([null, [], []]);
});

describe('a budget', () => {
  const shares = (mean_ns: number, surplus_ns: number | null, tail_share: number | null): Shares => ({
    mean_ns, typical_ns: mean_ns, tail_ns: null, above_ns: null, tail_share, variance_share: null,
    expected_ns: surplus_ns === null ? null : mean_ns - surplus_ns, surplus_ns,
  });
  const analysis: Pick<Analysis, 'services' | 'edges'> = {
    services: [
      { name: 'a', visits: 1, causes: { cpu: 30, stolen: 10 }, ...shares(40, 10, 0.1) },
      { name: 'b', visits: 1, causes: {}, ...shares(90, null, null) },
    ],
    edges: [{ id: 'a>b', from: 'a', to: 'b', calls: 1, causes: { 'wire-out': 5 }, ...shares(5, 20, 0.9) }],
  };

  it('has the largest first, and last what cannot be said', () => {
    const order = (by: 'surplus' | 'seen' | 'tail' | 'variance') => budget(analysis, by).map(({ title }) => title);
    expect(order('surplus')).toEqual(['a → b', 'a', 'b']);
    expect(order('seen')).toEqual(['b', 'a', 'a → b']);
    expect(order('tail')).toEqual(['a → b', 'a', 'b']);
    expect(order('variance')).toEqual(['b', 'a', 'a → b']);
    expect(budget(analysis, 'seen').map(({ mostly }) => mostly)).toEqual([null, { cause: 'cpu', share: 0.75 }, { cause: 'wire-out', share: 1 }]);
  });

  it('stacks causes in one order, without those that saved time', () => {
    const causes = ['wire-back', 'new', 'cpu', 'stolen'].map((cause, i) => ({ cause, ...shares([10, 20, 70, -5][i], null, null) }));
    const parts = stacked(causes, ({ mean_ns }) => mean_ns);
    expect(parts.map(({ cause, from, share }) => [cause, from, share])).toEqual([['cpu', 0, 0.7], ['wire-back', 0.7, 0.1], ['new', expect.closeTo(0.8, 9), 0.2]]);
    expect(stacked(causes, () => null)).toEqual([]);
  });
});

it('names in sentences stand between backticks', () => {
  expect(pieces('waits for `a-b` and `c`')).toEqual([
    { text: 'waits for ', name: false }, { text: 'a-b', name: true }, { text: ' and ', name: false }, { text: 'c', name: true },
  ]);
  expect(pieces('an open ` one')).toEqual([{ text: 'an open ` one', name: false }]);
  expect(pieces('')).toEqual([]);
});
