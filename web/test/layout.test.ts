import { describe, expect, it } from 'vitest';
import { crossings, reduceCrossings } from '../src/graph/layout/crossings';
import { NODE } from '../src/graph/layout/fold';
import { layered, longestPaths, type Graph } from '../src/graph/layout/layers';
import { layout } from '../src/graph/layout/layout';
import { stack } from '../src/graph/layout/stack';

const AREA = { width: 1264, height: 600 };

/** Numbers that look random, the same each time. */
function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return state / 2 ** 32;
  };
}

/** A graph whose every node but the first has callers before it. */
function random(nodes: number, more: number, seed: number): Graph {
  const next = dice(seed);
  const edges = new Map<string, [number, number]>();
  const add = (a: number, b: number) => edges.set(`${a}>${b}`, [a, b]);
  for (let v = 1; v < nodes; v++) add(Math.floor(next() * v), v);
  for (let i = 0; i < more; i++) {
    const [a, b] = [Math.floor(next() * nodes), Math.floor(next() * nodes)];
    if (a < b) add(a, b);
  }
  return { nodes, edges: [...edges.values()] };
}

const chain = (nodes: number): Graph => ({ nodes, edges: Array.from({ length: nodes - 1 }, (_, i) => [i, i + 1]) });

describe('layers', () => {
  it('are the longest paths', () => {
    const graph: Graph = { nodes: 5, edges: [[0, 1], [1, 2], [0, 2], [0, 3]] };
    expect([...longestPaths(graph)]).toEqual([0, 1, 2, 1, 0]);
  });

  it('end also for cycles and for a service that calls itself', () => {
    const layers = longestPaths({ nodes: 4, edges: [[0, 1], [1, 2], [2, 1], [3, 3]] });
    expect(layers[1]).not.toBe(layers[2]);
    expect(Math.max(...layers)).toBeLessThan(4);
  });

  it('hold every node once; each long edge bends in each layer between', () => {
    const graph = random(60, 80, 1);
    const { layers, layerOf, bends } = layered(graph);
    expect(layers.flat().filter((item) => item < 60).sort((a, b) => a - b)).toEqual([...Array(60).keys()]);
    graph.edges.forEach(([from, to], i) => {
      expect(layerOf[to]).toBeGreaterThan(layerOf[from]);
      expect(bends[i] ?? []).toHaveLength(layerOf[to] - layerOf[from] - 1);
    });
  });

  it('draw edges straight when bends would be too many', () => {
    const nodes = 1000;
    const edges: [number, number][] = [];
    for (let v = 1; v < nodes; v++) {
      edges.push([v - 1, v]);
      if (v > 1) edges.push([0, v]);
    }
    const { layers, bends } = layered({ nodes, edges });
    expect(layers.flat()).toHaveLength(nodes);
    expect(bends.every((bend) => bend === null)).toBe(true);
  });
});

describe('crossings', () => {
  it('are counted as by looking at each pair', () => {
    const graph = layered(random(40, 120, 2));
    let pairs = 0;
    for (let l = 0; l + 1 < graph.layers.length; l++) {
      const place = new Map(graph.layers[l + 1].map((item, i) => [item, i]));
      const lines = graph.layers[l].flatMap((item, i) => graph.behind[item].map((to) => [i, place.get(to)!]));
      for (const [a, b] of lines) for (const [c, d] of lines) if (a < c && b > d) pairs++;
    }
    expect(crossings(graph)).toBe(pairs);
  });

  it('of a graph that needs none are removed', () => {
    const graph = layered({ nodes: 6, edges: [[0, 3], [1, 4], [2, 5]] });
    graph.layers[1].reverse();
    expect(crossings(graph)).toBe(3);
    reduceCrossings(graph);
    expect(crossings(graph)).toBe(0);
  });

  it.each([3, 4, 5])('never become more (seed %d)', (seed) => {
    const graph = layered(random(80, 160, seed));
    const before = crossings(graph);
    const items = graph.layers.map((layer) => layer.length);
    reduceCrossings(graph);
    expect(crossings(graph)).toBeLessThanOrEqual(before);
    expect(graph.layers.map((layer) => layer.length)).toEqual(items);
  });
});

describe('a stack', () => {
  it('gives everyone their wish if it can', () => {
    expect(stack([0, 10, 30], [1, 1, 1], [5, 5])).toEqual([0, 10, 30]);
  });

  it('shares what is in the way, by weight', () => {
    expect(stack([0, 0], [1, 1], [10])).toEqual([-5, 5]);
    expect(stack([0, 0], [3, 1], [10])).toEqual([-2.5, 7.5]);
    expect(stack([], [], [])).toEqual([]);
  });

  it('keeps all apart and is as near as can be', () => {
    const next = dice(7);
    for (let round = 0; round < 50; round++) {
      const count = 1 + Math.floor(next() * 12);
      const wishes = Array.from({ length: count }, () => 100 * next());
      const weights = Array.from({ length: count }, () => 0.5 + next());
      const apart = Array.from({ length: count - 1 }, () => 20 * next());
      const cost = (places: number[]) => places.reduce((sum, place, i) => sum + weights[i] * (place - wishes[i]) ** 2, 0);
      const legal = (places: number[]) => apart.every((room, i) => places[i + 1] - places[i] >= room - 1e-9);
      const places = stack(wishes, weights, apart);
      expect(legal(places)).toBe(true);
      // No legal small step makes it better.
      for (let i = 0; i < count; i++) {
        for (const by of [-0.01, 0.01]) {
          const moved = places.map((place, k) => (by > 0 ? k >= i : k <= i) ? place + by : place);
          if (legal(moved)) expect(cost(moved)).toBeGreaterThan(cost(places) - 1e-9);
        }
      }
    }
  });
});

describe('a layout', () => {
  const cases: [string, Graph][] = [
    ['one service', { nodes: 1, edges: [] }],
    ['a chain of three', chain(3)],
    ['a chain of a hundred', chain(100)],
    ['a fan of two hundred', { nodes: 201, edges: Array.from({ length: 200 }, (_, i) => [0, i + 1]) }],
    ['many callers', random(60, 120, 8)],
    ['a thousand services', random(1000, 2500, 9)],
  ];

  it.each(cases)('keeps nodes apart, within its size: %s', (_, graph) => {
    const { x, y, width, height } = layout(graph, AREA);
    for (let a = 0; a < graph.nodes; a++) {
      expect(x[a]).toBeGreaterThanOrEqual(NODE.width / 2 - 1e-6);
      expect(x[a]).toBeLessThanOrEqual(width - NODE.width / 2 + 1e-6);
      expect(y[a]).toBeGreaterThanOrEqual(NODE.height / 2 - 1e-6);
      expect(y[a]).toBeLessThanOrEqual(height - NODE.height / 2 + 1e-6);
      for (let b = 0; b < a; b++) {
        const apart = Math.abs(x[a] - x[b]) >= NODE.width || Math.abs(y[a] - y[b]) >= NODE.height;
        if (!apart) expect.fail(`nodes ${a} and ${b} overlap`);
      }
    }
  });

  it.each(cases)('leads edges from the side of the caller to that of the callee: %s', (_, graph) => {
    const { x, y, ways } = layout(graph, AREA);
    graph.edges.forEach(([from, to], i) => {
      const [first, last] = [ways[i][0], ways[i].at(-1)!];
      expect([first.x - (first.towards * NODE.width) / 2, first.y]).toEqual([x[from], y[from]]);
      expect([last.x + (last.towards * NODE.width) / 2, last.y]).toEqual([x[to], y[to]]);
    });
  });

  it('is the same each time', () => {
    const graph = random(120, 200, 10);
    expect(layout(graph, AREA)).toEqual(layout(graph, AREA));
  });

  it('of a chain is a straight line', () => {
    const { x, y } = layout(chain(4), AREA);
    expect(new Set(y).size).toBe(1);
    expect([...x]).toEqual([...x].sort((a, b) => a - b));
  });

  it('folds what would be too long or too high to read', () => {
    for (const [graph, scale] of [[chain(100), 0.4], [cases[3][1], 0.35], [cases[5][1], 0.1]] as const) {
      const { width, height } = layout(graph, AREA);
      expect(Math.min(AREA.width / width, AREA.height / height)).toBeGreaterThan(scale);
    }
  });

  it('puts a service between those that it calls', () => {
    const { y } = layout({ nodes: 4, edges: [[0, 1], [0, 2], [0, 3]] }, AREA);
    expect(y[0]).toBeCloseTo(y[2], 6);
    expect([y[1], y[2], y[3]]).toEqual([...[y[1], y[2], y[3]]].sort((a, b) => a - b));
  });
});
