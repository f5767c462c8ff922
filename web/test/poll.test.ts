import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { poll } from '../src/state/poll';

/** As much of a page as polling looks at. */
class Page extends EventTarget {
  hidden = false;
  hide(hidden: boolean): void {
    this.hidden = hidden;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}
let page: Page;
const document = () => page as unknown as Document;

beforeEach(() => {
  vi.useFakeTimers();
  page = new Page();
});
afterEach(() => vi.useRealTimers());

it('asks at once, and again after each answer, until it is stopped', async () => {
  const ask = vi.fn(async () => true);
  const polling = poll(ask, () => 1000, document());
  await vi.advanceTimersByTimeAsync(2500);
  expect(ask).toHaveBeenCalledTimes(3);
  polling.stop();
  await vi.advanceTimersByTimeAsync(5000);
  expect(ask).toHaveBeenCalledTimes(3);
});

it('asks nothing while the page is hidden, and at once when it is seen', async () => {
  const ask = vi.fn(async () => true);
  poll(ask, () => 1000, document());
  await vi.advanceTimersByTimeAsync(0);
  page.hide(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ask).toHaveBeenCalledTimes(1);
  page.hide(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(ask).toHaveBeenCalledTimes(2);
});

it('has one question open at a time; a wish meanwhile is asked right after', async () => {
  let open = 0;
  let answer = () => {};
  const ask = vi.fn(() => {
    expect(++open).toBe(1);
    return new Promise<boolean>((resolve) => (answer = () => (open--, resolve(true))));
  });
  const polling = poll(ask, () => 1000, document());
  polling.now();
  polling.now();
  expect(ask).toHaveBeenCalledTimes(1);
  answer();
  await vi.advanceTimersByTimeAsync(0);
  expect(ask).toHaveBeenCalledTimes(2);
});

it('asks ever later after failures, and as before after an answer', async () => {
  let works = false;
  const ask = vi.fn(async () => works);
  const polling = poll(ask, () => 1000, document());
  await vi.advanceTimersByTimeAsync(1999);
  expect(ask).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1 + 4000 + 8000);
  expect(ask).toHaveBeenCalledTimes(4);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ask).toHaveBeenCalledTimes(10);
  works = true;
  polling.now();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ask).toHaveBeenCalledTimes(12);
});
