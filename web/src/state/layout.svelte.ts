/** When an element is near the screen, and how wide it is, without forcing a layout. */

import { flushSync } from 'svelte';

/** Charts are made this far before they scroll into sight. */
const AHEAD = '600px 0px';

/** Calls `then` once: when the element comes near the screen, or before the page is printed. */
export function whenNear(element: Element, then: () => void): () => void {
  const watch = new IntersectionObserver(
    (entries) => entries.some((entry) => entry.isIntersecting) && arrive(),
    { rootMargin: AHEAD },
  );
  // Paper has no scrolling, and does not wait for the next frame.
  const print = () => flushSync(arrive);
  function stop(): void {
    watch.disconnect();
    removeEventListener('beforeprint', print);
  }
  function arrive(): void {
    stop();
    then();
  }
  watch.observe(element);
  addEventListener('beforeprint', print);
  return stop;
}

/** Tells the element's inner width now and whenever it changes; the first time in the next frame. */
export function watchWidth(element: Element, tell: (width: number) => void): () => void {
  const watch = new ResizeObserver(([entry]) => tell(Math.round(entry.contentRect.width)));
  watch.observe(element);
  return () => watch.disconnect();
}
