/** Fewer crossings: each item moves to the middle of its neighbours, layer by layer. Pure. */

import type { Layered } from './layers';

/** Most sweeps through all layers. */
const SWEEPS = 24;
/** Sweeps in a row that change nothing for the better before the work ends. */
const PATIENCE = 4;
/** Most connections looked at over all sweeps, so that a large graph shows at once. */
const EFFORT = 4_000_000;

/** How many pairs of connections between neighbouring layers cross. */
export function crossings({ layers, behind }: Layered): number {
  let sum = 0;
  for (let l = 0; l + 1 < layers.length; l++) sum += between(layers[l], layers[l + 1], behind);
  return sum;
}

/** Inversions among the connections' ends, counted with a Fenwick tree. */
function between(upper: number[], lower: number[], behind: number[][]): number {
  const place = new Map(lower.map((item, i) => [item, i]));
  const tree = new Int32Array(lower.length + 1);
  let crossed = 0;
  let seen = 0;
  for (const item of upper) {
    const ends = behind[item].map((to) => place.get(to)!);
    for (const end of ends) {
      let before = 0;
      for (let i = end + 1; i > 0; i -= i & -i) before += tree[i];
      crossed += seen - before;
    }
    // Connections of one item do not cross each other.
    for (const end of ends) for (let i = end + 1; i < tree.length; i += i & -i) tree[i]++;
    seen += ends.length;
  }
  return crossed;
}

/** Orders the items of each layer by the barycentres of their neighbours; keeps the best order. */
export function reduceCrossings(graph: Layered): void {
  const place = new Float64Array(graph.layerOf.length);
  const number = (layer: number[]) => layer.forEach((item, i) => (place[item] = i));
  graph.layers.forEach(number);
  const connections = graph.behind.reduce((sum, all) => sum + all.length, 0);
  const sweeps = Math.min(SWEEPS, Math.ceil(EFFORT / (connections || 1)));

  let least = crossings(graph);
  let best = graph.layers.map((layer) => layer.slice());
  for (let sweep = 0, bad = 0; sweep < sweeps && least > 0 && bad < PATIENCE; sweep++) {
    const down = sweep % 2 === 0;
    const neighbours = down ? graph.before : graph.behind;
    for (let i = 1; i < graph.layers.length; i++) {
      const layer = graph.layers[down ? i : graph.layers.length - 1 - i];
      sortByMiddle(layer, neighbours, place);
      number(layer);
    }
    const now = crossings(graph);
    bad = now < least ? 0 : bad + 1;
    if (now < least) [least, best] = [now, graph.layers.map((layer) => layer.slice())];
  }
  graph.layers.splice(0, graph.layers.length, ...best);
}

/** Items without neighbours stay where they are between the others. */
function sortByMiddle(layer: number[], neighbours: number[][], place: Float64Array): void {
  const middle = new Map(
    layer.map((item) => {
      const all = neighbours[item];
      return [item, all.length === 0 ? place[item] : all.reduce((sum, n) => sum + place[n], 0) / all.length];
    }),
  );
  layer.sort((a, b) => middle.get(a)! - middle.get(b)!);
}
