/** Asks again and again, but not while nobody looks. */

/** Longest wait after failures. */
const MOST_MS = 10_000;

export interface Polling {
  stop: () => void;
  /** Asks now, unless a question is open, in which case once more right after it. */
  now: () => void;
}

/**
 * Calls `ask`, and again `every` milliseconds after it ended; after failures ever later. Only
 * one question is open at a time. While the page is hidden nothing is asked; when it is seen
 * again, at once. `ask` tells whether it was answered, and throws nothing.
 */
export function poll(ask: () => Promise<boolean>, every: () => number, page: Document = document): Polling {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let open = false;
  let again = false;
  let stopped = false;
  let failures = 0;

  async function run(): Promise<void> {
    if (open) {
      again = true;
      return;
    }
    clearTimeout(timer);
    if (stopped || page.hidden) return;
    open = true;
    failures = (await ask()) ? 0 : failures + 1;
    open = false;
    if (stopped) return;
    const wait = again ? 0 : failures === 0 ? every() : Math.min(every() * 2 ** failures, Math.max(MOST_MS, every()));
    again = false;
    timer = setTimeout(run, wait);
  }
  const seen = () => {
    if (!page.hidden) void run();
  };
  page.addEventListener('visibilitychange', seen);
  void run();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
      page.removeEventListener('visibilitychange', seen);
    },
    now: () => void run(),
  };
}
