/** The ways of edges as curves. Pure. */

import type { Stop } from '../layout/layout';

export interface Point {
  x: number;
  y: number;
}

/** A cubic curve: begin, two handles, end. */
export type Cubic = readonly [Point, Point, Point, Point];

/** Shortest handles, so that curves leave and reach nodes straight. */
const HANDLE = 36;

/** One curve between each two stops, smooth at the stops. */
export function curves(way: readonly Stop[]): Cubic[] {
  return way.slice(1).map((to, i) => {
    const from = way[i];
    const handle = Math.max(HANDLE, Math.abs(to.x - from.x) / 2);
    return [
      from,
      { x: from.x + from.towards * handle, y: from.y },
      { x: to.x - to.towards * handle, y: to.y },
      to,
    ];
  });
}

/** The point at a part of the way along a curve, 0 to 1. */
export function along([a, b, c, d]: Cubic, t: number): Point {
  const u = 1 - t;
  const [p, q, r, s] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
  return { x: p * a.x + q * b.x + r * c.x + s * d.x, y: p * a.y + q * b.y + r * c.y + s * d.y };
}

const PIECES = 12;

/** The distance of a point from curves, nearly; `within` at most. */
export function distance(all: readonly Cubic[], { x, y }: Point, within: number): number {
  let least = within;
  for (const curve of all) {
    const xs = curve.map((point) => point.x);
    const ys = curve.map((point) => point.y);
    // A curve lies inside the box around its points.
    if (x < Math.min(...xs) - least || x > Math.max(...xs) + least) continue;
    if (y < Math.min(...ys) - least || y > Math.max(...ys) + least) continue;
    let from = curve[0] as Point;
    for (let i = 1; i <= PIECES; i++) {
      const to = along(curve, i / PIECES);
      least = Math.min(least, fromLine(from, to, x, y));
      from = to;
    }
  }
  return least;
}

function fromLine(a: Point, b: Point, x: number, y: number): number {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : Math.min(Math.max(((x - a.x) * dx + (y - a.y) * dy) / length, 0), 1);
  return Math.hypot(a.x + t * dx - x, a.y + t * dy - y);
}
