/** Lets the pointer move and zoom a view, point and click. */

import type { View } from './view.svelte';

/** Shorter drags are clicks. */
const DRAG_PIXELS = 4;

interface PointerHandlers {
  /** Where the pointer is, in pixels of the element; negative: it is not over it, or drags. */
  point: (x: number, y: number) => void;
  click: (x: number, y: number) => void;
}

export function pointerControls(view: View, { point, click }: PointerHandlers): (element: HTMLElement) => () => void {
  return (element) => {
    const stop = new AbortController();
    const on = <K extends keyof HTMLElementEventMap>(kind: K, then: (event: HTMLElementEventMap[K]) => void, passive = true) =>
      element.addEventListener(kind, then, { signal: stop.signal, passive });
    const place = (event: MouseEvent) => {
      const { left, top } = element.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top] as const;
    };
    let pressed: { x: number; y: number; dragged: boolean } | null = null;
    on('pointerdown', (event) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      pressed = { x: event.clientX, y: event.clientY, dragged: false };
    });
    on('pointermove', (event) => {
      if (pressed === null) {
        point(...place(event));
        return;
      }
      const [x, y] = [event.clientX - pressed.x, event.clientY - pressed.y];
      if (!pressed.dragged && Math.hypot(x, y) < DRAG_PIXELS) return;
      point(-1, -1);
      view.pan(x, y);
      pressed = { x: event.clientX, y: event.clientY, dragged: true };
    });
    on('pointerup', (event) => {
      if (pressed && !pressed.dragged) click(...place(event));
      pressed = null;
    });
    on('pointercancel', () => (pressed = null));
    on('pointerleave', () => point(-1, -1));
    // Without a key the wheel scrolls the page, as everywhere on it.
    on('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      view.zoom(Math.exp(-event.deltaY * (event.deltaMode === 0 ? 0.002 : 0.06)), ...place(event));
    }, false);
    return () => stop.abort();
  };
}
