/**
 * Draws latencies over time: one column for each pixel, one row for each bin of latency,
 * the more answers a second the darker. Pure: numbers in, one code for each pixel out.
 */

import { weighed, type Timeline } from '../data/load';

/** Bin `b` holds latencies from `10 ** logOf(b)` seconds to that of `b + 1`. */
export const BINS = 80;
export const logOf = (bin: number) => bin / 10 - 5;

/** Least bins on the axis: less would make noise look like an event. */
const FEWEST = 10;

/** The bins to show, from and up to but not including: those in use, with a little room. */
export function binsOf(timelines: Timeline[]): [number, number] {
  let [low, high] = [BINS, -1];
  for (const { heatBin } of timelines) {
    for (const bin of heatBin) [low, high] = [Math.min(low, bin), Math.max(high, bin)];
  }
  if (high < 0) return [20, 20 + FEWEST];
  const more = Math.max(0, FEWEST - (high - low + 1));
  return [Math.max(low - 1 - (more >> 1), 0), Math.min(high + 2 + ((more + 1) >> 1), BINS)];
}

export interface HeatScene {
  timelines: Timeline[];
  /** Times at the left and the right edge. */
  span: readonly [number, number];
  /** Bins at the bottom, and above the top. */
  bins: readonly [number, number];
  width: number;
}

/**
 * One code for each pixel, rows from the top: 0 for nothing, else 1 to 255 by the
 * logarithm of answers a second. Of slots that share a pixel the densest counts, so
 * that a short stall is not thinned out.
 */
export function heat({ timelines, span, bins: [low, high], width }: HeatScene): Uint8Array {
  const rows = high - low;
  const density = new Float32Array(width * rows);
  const scale = width / (span[1] - span[0]);
  let most = 0;
  for (const timeline of timelines) {
    const { t, length, heatEnd, heatBin, heatCount } = timeline;
    for (let slot = 0; slot < t.length; slot++) {
      const from = Math.floor((t[slot] - span[0]) * scale);
      const to = Math.max(from + 1, Math.floor((t[slot] + length[slot] - span[0]) * scale));
      const [a, b] = [Math.max(from, 0), Math.min(to, width)];
      for (let i = slot > 0 ? heatEnd[slot - 1] : 0; i < heatEnd[slot]; i++) {
        const row = high - 1 - heatBin[i];
        if (row < 0 || row >= rows) continue;
        const answers = heatCount[i] / (weighed(timeline, slot) || 1);
        most = Math.max(most, answers);
        for (let x = row * width + a; x < row * width + b; x++) density[x] = Math.max(density[x], answers);
      }
    }
  }
  const codes = new Uint8Array(density.length);
  const step = 254 / Math.log1p(most || 1);
  density.forEach((answers, i) => {
    if (answers > 0) codes[i] = 1 + Math.round(step * Math.log1p(answers));
  });
  return codes;
}
