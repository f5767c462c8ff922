import { describe, expect, it } from 'vitest';
import type { Span } from '../src/graph/data/shapes';
import { failed, rows, shown, stolen } from '../src/graph/data/waterfall';

/** `id`, of `parent`, from, to. */
function span(id: string, parent: string | null, start_ns: number, end_ns: number, more: Partial<Span> = {}): Span {
  return {
    id, parent, kind: 'server', service: 's', name: '/', peer: '', start_ns, end_ns, cpu_ns: 0, queue_ns: 0,
    status: 200, attempt: 0, revision: 1, cause: '', ...more,
  };
}
const order = (spans: Span[]) => rows(spans).map(({ span, depth }) => ' '.repeat(depth) + span.id);
const critical = (spans: Span[]) => Object.fromEntries(rows(spans).filter(({ critical }) => critical.length > 0).map(({ span, critical }) => [span.id, critical]));

describe('rows', () => {
  it('stand below what caused them, in the order of their begin', () => {
    const spans = [span('c', 'a', 50, 60), span('b', 'a', 10, 40), span('d', 'b', 20, 30), span('a', null, 0, 100)];
    expect(order(spans)).toEqual(['a', ' b', '  d', ' c']);
    expect(rows(spans).map(({ inner }) => inner)).toEqual([3, 1, 0, 0]);
    expect(shown(rows(spans), new Set(['b'])).map(({ span }) => span.id)).toEqual(['a', 'b', 'c']);
    expect(shown(rows(spans), new Set(['a', 'b'])).map(({ span }) => span.id)).toEqual(['a']);
  });

  it('take what they get: twins, missing parents, parents in a ring, nothing', () => {
    expect(order([])).toEqual([]);
    expect(order([span('a', null, 0, 9), span('a', null, 0, 9)])).toEqual(['a']);
    const lost = rows([span('a', 'gone', 0, 9), span('b', null, 1, 2)]);
    expect(lost.map(({ orphan }) => orphan)).toEqual([true, false]);
    expect(order([span('r', null, 0, 9), span('x', 'y', 0, 1), span('y', 'x', 0, 1), span('z', 'z', 0, 1)]).sort()).toEqual(['r', 'x', 'y', 'z']);
  });

  it('of a deep chain need no deep stack', () => {
    const spans = Array.from({ length: 5000 }, (_, i) => span(String(i), i === 0 ? null : String(i - 1), i, 20000 - i));
    expect(rows(spans).at(-1)!.depth).toBe(4999);
  });
});

describe('the critical path', () => {
  it('of a chain is each span’s own time', () => {
    expect(critical([span('a', null, 0, 100), span('b', 'a', 20, 90), span('c', 'b', 30, 80)])).toEqual({
      a: [[0, 20], [90, 100]], b: [[20, 30], [80, 90]], c: [[30, 80]],
    });
  });

  it('of parallel calls is the one that ended last', () => {
    expect(critical([span('a', null, 0, 100), span('fast', 'a', 10, 50), span('slow', 'a', 12, 95)])).toEqual({
      a: [[0, 12], [95, 100]], slow: [[12, 95]],
    });
  });

  it('goes through calls one after the other', () => {
    expect(critical([span('a', null, 0, 100), span('b', 'a', 0, 40), span('c', 'a', 50, 100)])).toEqual({
      a: [[40, 50]], b: [[0, 40]], c: [[50, 100]],
    });
  });

  it('has what seems to end a little after its parent, up to there', () => {
    expect(critical([span('a', null, 0, 100), span('late', 'a', 90, 500)])).toEqual({ a: [[0, 90]], late: [[90, 100]] });
  });

  it('leaves out what outlives an answer, and not what a failure cut off', () => {
    const after = span('async', 'a', 90_000, 500_000);
    expect(critical([span('a', null, 0, 100_000), after])).toEqual({ a: [[0, 100_000]] });
    const gaveUp = span('a', null, 0, 100_000, { status: 504, cause: 'timeout' });
    expect(critical([gaveUp, after])).toEqual({ a: [[0, 90_000]], async: [[90_000, 100_000]] });
  });

  it('adds up to the request', () => {
    let state = 5;
    const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
    for (let round = 0; round < 40; round++) {
      const spans = [span('0', null, 0, 1000)];
      for (let i = 1; i < 40; i++) {
        const parent = spans[Math.floor(next() * spans.length)];
        const start = Math.floor(parent.start_ns + next() * (parent.end_ns - parent.start_ns));
        spans.push(span(String(i), parent.id, start, Math.floor(start + next() * 400)));
      }
      const sum = rows(spans).flatMap(({ critical }) => critical).reduce((sum, [from, to]) => sum + to - from, 0);
      expect(sum).toBe(1000);
    }
  });
});

it('stolen is what computing work took beyond the processor and its queue', () => {
  const work = (name: string) => span('w', 'a', 0, 100, { kind: 'work', name, cpu_ns: 60, queue_ns: 10 });
  expect([stolen(work('cpu')), stolen(work('sleep')), stolen(span('a', null, 0, 100))]).toEqual([30, 0, 0]);
  expect(stolen({ ...work('ops'), cpu_ns: 200 })).toBe(0);
});

it('a failure has a cause or a status that says so', () => {
  expect([span('a', null, 0, 1), span('a', null, 0, 1, { status: 503 }), span('a', null, 0, 1, { status: 0, cause: 'timeout' }), span('a', null, 0, 1, { status: 404 })].map(failed)).toEqual([false, true, true, false]);
});
