/** Where the entities of a crowd are in its picture. */

import { NONE } from '../data/lives';
import type { Survey } from '../data/survey';
import { rowsAt, SKEW, type Scene } from './raster';

export interface Crowd extends Scene {
  survey: Survey;
}

/** How a number becomes a place. */
export interface Axis {
  zeros: Int32Array | null;
  origin: number;
  unit: number;
  from: number;
  scale: number;
  width: number;
  x: (number: number, entity: number) => number;
}

export function axisOf({ lives, align, span, width }: Scene): Axis {
  const { origin, unit, first, at } = lives;
  const zeros = align === 'run' ? null : align === 'start' ? first : at[align];
  const scale = width / (span[1] - span[0]);
  const x = (number: number, entity: number) => {
    const zero = zeros ? span[0] + (origin + zeros[entity] * unit) : span[0];
    return Math.floor((origin + number * unit - zero) * scale);
  };
  return { zeros, origin, unit, from: span[0], scale, width, x };
}

/** For each entity the row of pixels that it is in; -1: none. */
export function linesOf({ lives, order, rows, height }: Scene, zeros: Int32Array | null): Int16Array {
  const lines = new Int16Array(lives.count).fill(-1);
  for (let y = 0; y < height; y++) {
    const [from, to] = rowsAt(y, rows, height);
    for (let row = from, end = Math.min(to, order.length); row < end; row++) lines[order[row]] = y;
  }
  const { first } = lives;
  for (let i = 0; i < lines.length; i++) if (first[i] === NONE || (zeros && zeros[i] === NONE)) lines[i] = -1;
  return lines;
}

/** Draws the intervals that always show, the longest last. */
export function drawOutliers(codes: Uint8Array, lines: Int16Array, axis: Axis, { lives, shown, survey }: Crowd): void {
  const { x, width, zeros } = axis;
  for (const { entity, from, to } of survey.far) {
    const y = lines[entity];
    if (y < 0 || zeros?.[entity] === NONE || (to === from + 1 && !shown[from])) continue;
    const [begin, end] = [lives.at[from][entity], lives.at[to][entity]];
    const back = end < begin;
    const a = Math.max(x(back ? end : begin, entity), 0);
    const b = Math.min(x(back ? begin : end, entity), width);
    if (a < b) codes.fill(back ? SKEW : to, y * width + a, y * width + b);
  }
}

const same = (a: readonly unknown[], b: readonly unknown[]) => a.length === b.length && a.every((one, i) => one === b[i]);

/** Is an entity that has not changed at the same pixels from left to right? */
export function isSameAxis(a: Crowd, b: Crowd): boolean {
  const all = ({ lives, width, align, span, shown }: Crowd) => [width, align, lives.origin, lives.unit, ...span, ...shown, ...lives.points];
  return same(all(a), all(b));
}

/** Do the pictures have the same rows? */
export function isSameRows(a: Crowd, b: Crowd): boolean {
  return same([a.height, ...a.rows], [b.height, ...b.rows]);
}
