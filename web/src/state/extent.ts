/** The stretch of time over which timelines lie. */

import { endsOfAll, NONE, type Align, type Lives } from '../data/lives';
import type { Span } from './axis.svelte';
import { MANY } from './later';

/**
 * A number that grows with many entities, with room for some more: at most a sixteenth of it. So most of what is
 * drawn of them stays where it is while they grow.
 */
export function withRoom({ cache, count }: Lives, number: number): number {
  if (!cache || count <= MANY || number <= 0) return number;
  const step = 2 ** (Math.floor(Math.log2(number)) - 4);
  return Math.ceil(number / step) * step;
}

/** First to last time of any entity, with a margin; while many grow on the run's axis, also with room for what comes. */
export function extent(lives: Lives, align: Align): Span {
  const { first, last, origin, unit } = lives;
  const zeros = align === 'run' ? null : align === 'start' ? first : lives.at[align];
  let from = Infinity;
  let to = -Infinity;
  const ends = zeros ? null : endsOfAll(lives);
  if (ends) [from, to] = ends.map((number) => origin + number * unit);
  for (let i = 0; zeros && i < lives.count; i++) {
    if (first[i] === NONE || zeros[i] === NONE) continue;
    const shift = origin + zeros[i] * unit;
    const [begin, end] = [origin + first[i] * unit - shift, origin + last[i] * unit - shift];
    if (begin < from) from = begin;
    if (end > to) to = end;
  }
  // They may have begun long before the run: a part of its time would be gone at once.
  if (align === 'run') to = from + withRoom(lives, to - from);
  if (!(to > from)) return Number.isFinite(from) ? [from - 0.5, from + 0.5] : [0, 1];
  const margin = (to - from) * 0.01;
  return [from - margin, to + margin];
}
