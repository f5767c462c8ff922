/** Packs numbers as the report's writer does, for the tests. */

import type { Column } from '../src/data/run';

export function packPlain(values: (number | null)[], predict: (row: number, before: number) => number = () => 0) {
  const n = values.length;
  const bytes = new Uint8Array(4 * n);
  let before = 0;
  values.forEach((value, row) => {
    if (value === null) return;
    const difference = value - predict(row, before);
    const stored = (difference >= 0 ? 2 * difference : -2 * difference - 1) + 1;
    for (let plane = 0; plane < 4; plane++) bytes[plane * n + row] = (stored / 2 ** (8 * plane)) & 255;
    before = value;
  });
  return bytes;
}

export const place = (n: number, coding: Column['coding'] = 'plain', at = 0): Column => ({ at, n, planes: 4, coding, digits: null });

/** A generator of numbers in 0..1 that always gives the same ones. */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
