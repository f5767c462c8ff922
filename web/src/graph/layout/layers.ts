/** Layers of a directed acyclic graph: each node is behind all that lead to it. Pure. */

export interface Graph {
  /** Nodes are numbered from 0. */
  nodes: number;
  edges: readonly (readonly [from: number, to: number])[];
}

/** A graph whose edges lead from each layer to the next only. */
export interface Layered {
  /** The items of each layer: nodes of the graph, and behind these bends of its long edges. */
  layers: number[][];
  /** The layer of each item. */
  layerOf: Int32Array;
  /** Each item's neighbours in the layer before and in the layer behind it. */
  before: number[][];
  behind: number[][];
  /** For each edge of the graph its bends, in order; null: it is drawn straight. */
  bends: (number[] | null)[];
}

/** Most bends of a graph; with more, long edges are drawn straight. */
const MOST_BENDS = 20_000;

/**
 * The longest path that leads to each node. Of edges on a cycle (which no checked file has)
 * those that close it count for nothing.
 */
export function longestPaths({ nodes, edges }: Graph): Int32Array {
  const layer = new Int32Array(nodes);
  const out: number[][] = Array.from({ length: nodes }, () => []);
  const open = new Int32Array(nodes);
  for (const [from, to] of edges) {
    if (from === to) continue;
    out[from].push(to);
    open[to]++;
  }
  const done = new Uint8Array(nodes);
  const ready: number[] = [];
  for (let v = 0; v < nodes; v++) if (open[v] === 0) ready.push(v);
  for (let unseen = 0; ; ) {
    const v = ready.pop();
    if (v === undefined) {
      while (unseen < nodes && done[unseen]) unseen++;
      if (unseen === nodes) return layer;
      ready.push(unseen);
      continue;
    }
    if (done[v]) continue;
    done[v] = 1;
    for (const w of out[v]) {
      if (done[w]) continue;
      layer[w] = Math.max(layer[w], layer[v] + 1);
      if (--open[w] === 0) ready.push(w);
    }
  }
}

/** Puts nodes into layers, in the order in which a walk from the first node meets them. */
export function layered(graph: Graph): Layered {
  const { nodes, edges } = graph;
  const nodeLayer = longestPaths(graph);
  const depth = nodeLayer.reduce((most, layer) => Math.max(most, layer + 1), 0);
  let count = 0;
  for (const [from, to] of edges) count += Math.max(0, nodeLayer[to] - nodeLayer[from] - 1);
  const bent = count <= MOST_BENDS;
  const items = nodes + (bent ? count : 0);
  const layerOf = new Int32Array(items);
  layerOf.set(nodeLayer);
  const before: number[][] = Array.from({ length: items }, () => []);
  const behind: number[][] = Array.from({ length: items }, () => []);
  const join = (a: number, b: number) => {
    behind[a].push(b);
    before[b].push(a);
  };
  let next = nodes;
  const bends = edges.map(([from, to]) => {
    const span = nodeLayer[to] - nodeLayer[from];
    if (span === 1) join(from, to);
    if (span <= 1 || !bent) return null;
    const way: number[] = [];
    for (let at = from, layer = nodeLayer[from] + 1; layer <= nodeLayer[to]; layer++) {
      const item = layer === nodeLayer[to] ? to : next++;
      if (item !== to) way.push(item);
      layerOf[item] = layer;
      join(at, item);
      at = item;
    }
    return way;
  });
  return { layers: walk(depth, layerOf, before, behind), layerOf, before, behind, bends };
}

/** The items of each layer in the order in which a walk, callees in the order of calls, meets them. */
function walk(depth: number, layerOf: Int32Array, before: number[][], behind: number[][]): number[][] {
  const layers: number[][] = Array.from({ length: depth }, () => []);
  const seen = new Uint8Array(layerOf.length);
  const visit = (root: number) => {
    const stack = [root];
    for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
      if (seen[item]) continue;
      seen[item] = 1;
      layers[layerOf[item]].push(item);
      for (let i = behind[item].length; i-- > 0; ) stack.push(behind[item][i]);
    }
  };
  for (let item = 0; item < layerOf.length; item++) if (before[item].length === 0) visit(item);
  return layers;
}
