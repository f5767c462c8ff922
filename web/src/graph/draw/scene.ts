/** A laid-out graph with its names: what can be drawn, and what is at a point. Pure. */

import type { Topology } from '../data/shapes';
import { NODE } from '../layout/fold';
import { layout, type Layout } from '../layout/layout';
import { curves, distance, type Cubic } from './curves';

export interface Scene {
  layout: Layout;
  names: string[];
  /** The place of each service among the names. */
  place: Map<string, number>;
  edges: SceneEdge[];
  /** Places of the edges that lead to and from each service. */
  into: number[][];
  outOf: number[][];
}

export interface SceneEdge {
  id: string;
  from: number;
  to: number;
  curves: Cubic[];
  /** Where its label stands: the curve, and the part of the way along it. */
  label: { curve: number; part: number };
}

/** What the pointer is at. */
export type Hit = { kind: 'service'; place: number } | { kind: 'edge'; place: number } | null;

/** The entry comes first, so that the walk through the graph begins there. */
export function scene(topology: Topology, area: { width: number; height: number }): Scene {
  const names = topology.services.map(({ name }) => name);
  if (topology.entry !== null) names.sort((a, b) => Number(b === topology.entry) - Number(a === topology.entry));
  const place = new Map(names.map((name, i) => [name, i]));
  const known = topology.edges.filter(({ from, to }) => place.has(from) && place.has(to));
  const ends = known.map(({ from, to }) => [place.get(from)!, place.get(to)!] as const);
  const laid = layout({ nodes: names.length, edges: ends }, area);
  const into: number[][] = names.map(() => []);
  const outOf: number[][] = names.map(() => []);
  ends.forEach(([from, to], i) => {
    outOf[from].push(i);
    into[to].push(i);
  });
  const edges = ends.map(([from, to], i) => {
    const way = curves(laid.ways[i]);
    // Near the end that it shares with fewer others.
    const callers = outOf[from].length - into[to].length;
    const label = callers > 0 ? { curve: way.length - 1, part: 0.66 } : callers < 0 ? { curve: 0, part: 0.34 } : middle(way.length);
    return { id: known[i].id, from, to, curves: way, label };
  });
  return { layout: laid, names, place, edges, into, outOf };
}

const middle = (curves: number) => ({ curve: Math.floor((curves - 1) / 2), part: curves % 2 === 0 ? 1 : 0.5 });

/** What is at a point of the drawing; edges count from so far away. */
export function hit({ layout, edges }: Scene, x: number, y: number, reach: number): Hit {
  for (let i = 0; i < layout.x.length; i++) {
    if (Math.abs(layout.x[i] - x) <= NODE.width / 2 && Math.abs(layout.y[i] - y) <= NODE.height / 2) {
      return { kind: 'service', place: i };
    }
  }
  let found = -1;
  let least = reach;
  edges.forEach((edge, i) => {
    const far = distance(edge.curves, { x, y }, least);
    if (far < least) [found, least] = [i, far];
  });
  return found < 0 ? null : { kind: 'edge', place: found };
}

/** Where an arrow key leads from a service: to a caller, to a callee, up or down in its layer. */
export function step({ layout, edges, into, outOf }: Scene, from: number, key: string): number {
  const nearest = (all: number[]) =>
    all.reduce((best, next) => (best < 0 || Math.abs(layout.y[next] - layout.y[from]) < Math.abs(layout.y[best] - layout.y[from]) ? next : best), -1);
  const layer = layout.layers[layout.layerOf[from]];
  const at = layer.indexOf(from);
  const next =
    key === 'ArrowRight'
      ? nearest(outOf[from].map((edge) => edges[edge].to))
      : key === 'ArrowLeft'
        ? nearest(into[from].map((edge) => edges[edge].from))
        : key === 'ArrowUp'
          ? (layer[at - 1] ?? -1)
          : key === 'ArrowDown'
            ? (layer[at + 1] ?? -1)
            : -1;
  return next < 0 ? from : next;
}
