/** Small lifecycles for the tests, one row of times for each entity. */

import type { Lives } from '../src/data/decode';

export function livesOf(rows: (number | null)[][], groups: string[] = []): Lives {
  const points = rows[0]?.length ?? 0;
  const known = (row: (number | null)[]) => row.filter((t): t is number => t !== null);
  const names = [...new Set(groups)];
  return {
    name: 'task',
    points: Array.from({ length: points }, (_, i) => `p${i}`),
    count: rows.length,
    at: Array.from({ length: points }, (_, i) => Float64Array.from(rows, (row) => row[i] ?? NaN)),
    ids: rows.map((_, i) => `id-${i}`),
    groups: names,
    group: Int32Array.from(rows, (_, i) => names.indexOf(groups[i])),
    start: Float64Array.from(rows, (row) => (known(row).length ? Math.min(...known(row)) : NaN)),
    lines: () => null,
    end: Float64Array.from(rows, (row) => (known(row).length ? Math.max(...known(row)) : NaN)),
  };
}

export const everyone = (lives: Lives) => Uint32Array.from({ length: lives.count }, (_, i) => i);
