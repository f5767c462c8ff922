/** Work that would hold up the page, done in pieces between frames. */

import type { Pieces } from '../data/stats';

/** From so many entities on their numbers come later. */
export const MANY = 20_000;
/** What was asked for first is shown first. */
const AFTER_MS = 120;
/** Longest stretch without a pause, unless one piece is longer. */
const STRETCH_MS = 12;

/** Does the work in pieces, from `after_ms` on, and tells what came of it, unless the returned function is called before. */
export function later<T>(pieces: Pieces<T>, tell: (value: T) => void, after_ms = AFTER_MS): () => void {
  let timer = setTimeout(go, after_ms);
  function go(): void {
    const until = performance.now() + STRETCH_MS;
    do {
      const { done, value } = pieces.next();
      if (done) return tell(value);
    } while (performance.now() < until);
    timer = setTimeout(go);
  }
  return () => clearTimeout(timer);
}
