/** What a search for a limit found, as it is drawn. Pure functions. */

import { rate } from './load';
import type { Capacity, Estimate, Fit, Hold } from './run';

/** How a hold ended: the guard comes before the objective. */
export type Ended = 'good' | 'bad' | 'invalid';

export const endedOf = ({ good, invalid }: Hold): Ended => (invalid.length > 0 ? 'invalid' : good ? 'good' : 'bad');

/** `41,800/s (40,900/s to 42,600/s, 90 %)`. */
export function estimate({ rate: best, low, high, confidence }: Estimate): string {
  return `${rate(best)} (${rate(low)} to ${rate(high)} with ${Math.round(100 * confidence)} %)`;
}

/** The knee in words, also when there is none. */
export function kneeText({ knee, limit }: Capacity): string {
  if (!knee && limit === 'unsure') return 'No knee is told: too little is known between the rates that held and those that failed.';
  if (!knee) return 'No knee was found.';
  const most = knee.low === knee.high ? rate(knee.low) : estimate(knee);
  if (limit === 'generator') return `The knee is at least ${most}: beyond that the generator, or the machine it shares, was the limit.`;
  if (limit === 'range') return `The knee is at least ${most}: the highest rate that was tried held.`;
  return `The objective holds up to ${most}.`;
}

/** Throughput by concurrency under the universal scalability law. */
export const usl = ({ lambda, alpha, beta }: Fit, n: number) => (lambda * n) / (1 + alpha * (n - 1) + beta * n * (n - 1));

/**
 * Where the law may be drawn: over the concurrency that was seen, and up to the peak
 * where that may be told. Nothing for fewer than two different ones.
 */
export function uslSpan(fit: Fit, holds: Hold[]): [number, number] | null {
  const seen = holds.filter((hold) => hold.invalid.length === 0 && hold.in_flight > 0).map((hold) => hold.in_flight);
  if (seen.length === 0) return null;
  const [low, high] = [Math.min(...seen), Math.max(...seen, ...(fit.peak ? [fit.peak.high] : []))];
  return high > low ? [low, high] : null;
}
