import { expect, test } from 'vitest';
import { number, probeText } from '../src/data/probes';

test('failures and skipped tries are said, and nothing of a healthy probe', () => {
  const of = (parts: object) => probeText({ name: 'p', tries: 10, failed: 0, skipped: 0, ...parts });
  expect(of({})).toBe('10 tries');
  expect(of({ tries: 36_000, failed: 1200, error: 'refused' })).toBe('36,000 tries; 1,200 failed, the last: refused');
  expect(of({ tries: 1, of: 'web.0' })).toBe('web.0: 1 try');
  expect(of({ failed: 2, error: 'status 503', skipped: 3 })).toBe('10 tries; 2 failed, the last: status 503; 3 skipped');
  expect(of({ failed: 10, error: 'refused' })).toBe('10 tries; none was answered: refused');
});

test('numbers are short', () => {
  expect(number(1)).toBe('1');
  expect(number(1 / 3)).toBe('0.333333');
  expect(number(1234567)).toBe('1234570');
  // Before the first answer there is none.
  expect([number(NaN), number(-Infinity)]).toEqual(['–', '–']);
});
