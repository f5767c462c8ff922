/** Small lifecycles for the tests, one row of times for each entity. */

import { textIds } from '../src/data/ids';
import { ends, NONE, type Lives } from '../src/data/lives';

/** A part of a second in which halves and quarters are whole. */
const UNIT = 2 ** -20;

export function livesOf(rows: (number | null)[][], groups: string[] = []): Lives {
  const width = rows[0]?.length ?? 0;
  let origin = 0;
  for (const row of rows) for (const t of row) if (t !== null && t < origin) origin = Math.floor(t);
  const number = (t: number | null) => (t === null ? NONE : Math.round((t - origin) / UNIT));
  const at = Array.from({ length: width }, (_, point) => Int32Array.from(rows, (row) => number(row[point])));
  const names = [...new Set(groups)];
  const [first, last] = [new Int32Array(rows.length), new Int32Array(rows.length)];
  ends(at, first, last);
  return {
    name: 'task',
    points: Array.from({ length: width }, (_, i) => `p${i}`),
    count: rows.length,
    at,
    origin,
    unit: UNIT,
    first,
    last,
    ids: textIds(rows.map((_, i) => `id-${i}`)),
    groups: names,
    group: Int32Array.from(rows, (_, i) => names.indexOf(groups[i])),
    digits: null,
    lines: () => null,
  };
}

export const everyone = (lives: Lives) => Uint32Array.from({ length: lives.count }, (_, i) => i);
