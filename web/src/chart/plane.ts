/** Axes of charts whose both directions are quantities. Pure functions. */

import { logTicks, ticks } from './scales';

/** One direction: from a value to its part of the way, 0 to 1, and back. */
export interface Scale {
  part: (value: number) => number;
  value: (part: number) => number;
  /** Round values on the way. */
  ticks: number[];
}

export function linear(from: number, to: number, most: number): Scale {
  const length = to - from || 1;
  return {
    part: (value) => (value - from) / length,
    value: (part) => from + part * length,
    ticks: ticks(from, from + length, most),
  };
}

/** Powers of ten are evenly spaced; the bounds are above 0. */
export function logarithmic(from: number, to: number): Scale {
  const [low, high] = [Math.log10(from), Math.log10(to)];
  const length = high - low || 1;
  return {
    part: (value) => (Math.log10(value) - low) / length,
    value: (part) => 10 ** (low + part * length),
    ticks: logTicks(low, low + length).map((log) => 10 ** log),
  };
}

/** A logarithmic scale that holds all values above 0, with a little room and at least a factor of four. */
export function logarithmicAround(values: number[]): Scale {
  const some = values.filter((value) => value > 0 && Number.isFinite(value));
  if (some.length === 0) return logarithmic(1e-3, 1);
  const [low, high] = [Math.log10(Math.min(...some)), Math.log10(Math.max(...some))];
  const room = Math.max(0.06 * (high - low), (0.6 - (high - low)) / 2, 0.02);
  return logarithmic(10 ** (low - room), 10 ** (high + room));
}
