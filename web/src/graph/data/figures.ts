/** What is shown beside a service or an edge, and how it is said. Pure. */

import { count, duration, percent } from '../../chart/scales';
import type { EdgeStats, Latency, ServiceStats } from './shapes';

/** The figures of a service or of an edge. */
export interface Figures {
  /** Requests or attempts, per second. */
  rate: number;
  /** Share of these that failed; null: there were none. */
  errors: number | null;
  p50_ns: number | null;
  /** null also when there are too few answers to say it. */
  p99_ns: number | null;
  in_flight: number;
}

export const NOTHING: Figures = { rate: 0, errors: null, p50_ns: null, p99_ns: null, in_flight: 0 };

/** Failures may have begun before the stretch that the rate is of. */
export function figures(of: ServiceStats | EdgeStats | undefined): Figures {
  if (!of) return NOTHING;
  const { rate, errors, latency, in_flight } = of;
  const share = rate > 0 ? Math.min(errors / rate, 1) : errors > 0 ? 1 : null;
  return { rate, errors: share, p50_ns: latency?.p50_ns ?? null, p99_ns: p99(latency), in_flight };
}

/** Fewer answers say nothing about their slowest hundredth. */
const ENOUGH = 100;

function p99(latency: Latency | null): number | null {
  return latency && latency.count >= ENOUGH ? latency.p99_ns : null;
}

/** `2,140/s`, `0.4/s`; one that is not 0 is never shown as 0: `0.04/s`. */
export function rate(perSecond: number): string {
  if (!Number.isFinite(perSecond)) return '–';
  if (perSecond > 0 && perSecond < 0.05) return `${Number(perSecond.toPrecision(1))}/s`;
  return `${perSecond >= 9.95 ? count(Math.round(perSecond)) : perSecond === 0 ? '0' : perSecond.toFixed(1)}/s`;
}

/** `1.27 ms` for nanoseconds; a dash for none. */
export function time(nanoseconds: number | null | undefined): string {
  return nanoseconds === null || nanoseconds === undefined ? '–' : duration(nanoseconds / 1e9);
}

/** A share of failures; one that is not 0 is never shown as 0. */
export function errorShare(share: number | null): string {
  if (share === null) return '–';
  if (share > 0 && share < 0.0005) return '< 0.1 %';
  if (share < 1 && share >= 0.9995) return '> 99.9 %';
  return percent(share);
}

/** How bad a share of failures is: the places of `ERROR_STEPS`. */
export function errorStep(share: number | null): number {
  if (share === null || share === 0) return 0;
  return share < 0.01 ? 1 : share < 0.1 ? 2 : 3;
}

/** What the steps mean. */
export const ERROR_STEPS = ['none', 'below 1 %', '1 to 10 %', '10 % or more'];
