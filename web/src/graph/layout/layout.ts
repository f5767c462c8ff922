/** Where each node and each edge of a graph is drawn. Pure. */

import { reduceCrossings } from './crossings';
import { fold, GAP, layerHeight, layerWidth, NODE, type Fold } from './fold';
import { layered, type Graph, type Layered } from './layers';
import { stack } from './stack';

export interface Layout {
  width: number;
  height: number;
  /** Middle of each node. */
  x: Float64Array;
  y: Float64Array;
  /** The way of each edge. */
  ways: Stop[][];
  /** Nodes of each layer from the top, for walking with keys. */
  layers: number[][];
  layerOf: Int32Array;
}

/** A point that an edge goes through, to the right (1) or to the left (-1). */
export interface Stop {
  x: number;
  y: number;
  towards: 1 | -1;
}

/** Sweeps that move items to the middle of their neighbours. */
const SWEEPS = 8;
/** A bend wishes twice as much to be straight. */
const STRAIGHT = 2;

/** Lays out a graph to be read in an area of so many pixels. */
export function layout(graph: Graph, area: { width: number; height: number }): Layout {
  const { nodes, edges } = graph;
  const parts = layered(graph);
  reduceCrossings(parts);
  const isNode = (item: number) => item < nodes;
  const loads = parts.layers.map((layer) => {
    const some = layer.filter(isNode).length;
    return { nodes: some, bends: layer.length - some };
  });
  const folded = fold(loads, area.width, area.height);

  const x = new Float64Array(parts.layerOf.length);
  const y = new Float64Array(parts.layerOf.length);
  const towards = new Int8Array(parts.layers.length);
  let width = 0;
  let height = -GAP.bands;
  const lengths = folded.bands.map(([from, to]) => {
    let length = -GAP.layers;
    for (let l = from; l < to; l++) length += layerWidth(folded.columns[l]) + GAP.layers;
    return length;
  });
  width = Math.max(0, ...lengths);
  folded.bands.forEach(([from, to], band) => {
    const forward = band % 2 === 0;
    let left = 0;
    for (let l = from; l < to; l++) {
      towards[l] = forward ? 1 : -1;
      const across = layerWidth(folded.columns[l]);
      columns(parts.layers[l], isNode, folded.columns[l], (item, middle) => {
        const at = left + middle;
        x[item] = forward ? at : width - at;
      });
      left += across + GAP.layers;
    }
    const tall = rows(parts, folded, [from, to], isNode, y);
    const top = height + GAP.bands;
    for (let l = from; l < to; l++) for (const item of parts.layers[l]) y[item] += top;
    height = top + tall;
  });

  const ways = edges.map(([from, to], i) => {
    const [out, into] = [towards[parts.layerOf[from]] as 1 | -1, towards[parts.layerOf[to]] as 1 | -1];
    const way: Stop[] = [{ x: x[from] + (out * NODE.width) / 2, y: y[from], towards: out }];
    for (const bend of parts.bends[i] ?? []) {
      way.push({ x: x[bend], y: y[bend], towards: towards[parts.layerOf[bend]] as 1 | -1 });
    }
    way.push({ x: x[to] - (into * NODE.width) / 2, y: y[to], towards: into });
    return way;
  });
  return {
    width,
    height: Math.max(0, height),
    x: x.slice(0, nodes),
    y: y.slice(0, nodes),
    ways,
    layers: parts.layers.map((layer) => layer.filter(isNode)),
    layerOf: parts.layerOf.slice(0, nodes),
  };
}

/** Tells for each item of a layer how far right its middle is; nodes row by row. */
function columns(layer: number[], isNode: (item: number) => boolean, count: number, tell: (item: number, middle: number) => void): void {
  let seen = 0;
  for (const item of layer) {
    if (!isNode(item)) {
      tell(item, layerWidth(count) / 2);
      continue;
    }
    tell(item, (seen % count) * (NODE.width + GAP.columns) + NODE.width / 2);
    seen++;
  }
}

/** Gives every item of a band its height, from 0 on; returns how tall the band is. */
function rows(
  { layers, before, behind, layerOf }: Layered,
  { columns }: Fold,
  [from, to]: readonly [number, number],
  isNode: (item: number) => boolean,
  y: Float64Array,
): number {
  const inside = (item: number) => layerOf[item] >= from && layerOf[item] < to;
  const half = (item: number) => (isNode(item) ? (NODE.height + GAP.rows) / 2 : GAP.bends / 2);

  // At first each layer is centred.
  for (let l = from; l < to; l++) {
    const layer = layers[l];
    if (columns[l] > 1) {
      grid(layer, isNode, columns[l], y);
      continue;
    }
    let at = -layer.reduce((sum, item) => sum + half(item), 0);
    for (const item of layer) {
      y[item] = at + half(item);
      at += 2 * half(item);
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (let i = 0; i < to - from; i++) {
      const l = down ? from + i : to - 1 - i;
      const layer = layers[l];
      if (columns[l] > 1 || layer.length === 0) continue;
      // The last sweep looks to both sides.
      const sides = sweep === SWEEPS - 1 ? [before, behind] : [down ? before : behind];
      const wishes = layer.map((item) => {
        const all = sides.flatMap((side) => side[item].filter(inside));
        return all.length === 0 ? y[item] : all.reduce((sum, n) => sum + y[n], 0) / all.length;
      });
      const apart = layer.slice(1).map((item, i) => half(layer[i]) + half(item));
      const places = stack(wishes, layer.map((item) => (isNode(item) ? 1 : STRAIGHT)), apart);
      places.forEach((place, i) => (y[layer[i]] = place));
    }
  }

  let [top, bottom] = [Infinity, -Infinity];
  for (let l = from; l < to; l++) {
    for (const item of layers[l]) {
      const reach = isNode(item) ? NODE.height / 2 : 0;
      top = Math.min(top, y[item] - reach);
      bottom = Math.max(bottom, y[item] + reach);
    }
  }
  for (let l = from; l < to; l++) for (const item of layers[l]) y[item] -= top;
  return bottom - top;
}

/** A layer of several columns, around height 0. Its bends pass between the rows. */
function grid(layer: number[], isNode: (item: number) => boolean, count: number, y: Float64Array): void {
  const nodes = layer.filter(isNode).length;
  const step = NODE.height + GAP.rows;
  const top = (NODE.height - layerHeight({ nodes, bends: 0 }, count)) / 2;
  let seen = 0;
  for (const item of layer) {
    const row = Math.floor(seen / count);
    y[item] = top + step * (isNode(item) ? row : row - 0.5);
    if (isNode(item)) seen++;
  }
}
