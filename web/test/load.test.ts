import { describe, expect, it } from 'vitest';
import { endedOf, estimate, kneeText, usl, uslSpan } from '../src/data/capacity';
import { valueAt } from '../src/data/decode';
import { afterEnd, atBest, doubtful, failedShare, firstShown, formatted, gap, health, line, percentileName, perSecond, quantity, rate, smallShare } from '../src/data/load';
import type { Capacity, Expectation, Fit, Hold, LoadSummary, Outcome } from '../src/data/run';
import type { Result } from '../src/data/load';
import shares from './shares.json';
import { resultOf, summaryOf, times, timelineOf } from './loads';

describe('numbers', () => {
  it('rates keep about three digits', () => {
    expect([5000, 41834.4, 12.5, 999.94, 95.833, 0.25, 0, NaN].map(rate)).toEqual(['5,000/s', '41,834/s', '12.5/s', '1,000/s', '95.8/s', '0.25/s', '0/s', '–']);
  });

  it('means of many things have all their whole digits', () => {
    expect([12_345.6, 1000, 99.96, 12.345, 0.000123, 0, NaN].map(quantity)).toEqual(['12,346', '1,000', '100', '12.3', '0.000123', '0', '–']);
  });

  it('shares are those of the terminal', () => {
    expect(shares.map(([share]) => smallShare(share as number))).toEqual(shares.map(([, text]) => text));
    expect(smallShare(NaN)).toBe('–');
  });

  it('what the generator spoiled is withheld, and its bounds are told', () => {
    const some = times({ p90: 0.005, bounds: { p99: [0.001, 0.009], mean: [0.002, 0.003], p999: [1, 2] } });
    expect([formatted(some, 'p99'), formatted(some, 'p90'), formatted(some, 'p75')]).toEqual(['withheld', '5.00 ms', '–']);
    expect(doubtful(times({ bounds: { p99: [0.5, null] } }))).toBe('p99 500 ms to no answer');
    expect(doubtful(some)).toBe('mean 2.00 ms to 3.00 ms, p99 1.00 ms to 9.00 ms, p99.9 1.00 s to 2.00 s');
  });

  it('a percentile among requests without an answer says so', () => {
    const some = times({ p90: 0.005, unanswered: 50, no_answer: ['p99', 'max'] });
    expect((['p90', 'p99', 'p999', 'max'] as const).map((name) => formatted(some, name))).toEqual(['5.00 ms', 'no answer', '–', 'no answer']);
  });

  it('percentiles have their usual names', () => {
    expect([0.5, 0.9, 0.999, 0.9999, 1 - 1e-6].map(percentileName)).toEqual(['p50', 'p90', 'p99.9', 'p99.99', 'p99.9999']);
  });

  it('the share of failures is that of the result', () => {
    const { requests } = summaryOf();
    expect(failedShare(summaryOf({ requests: { ...requests, failed_share: 0.264 } }))).toBe(0.264);
    expect(failedShare(summaryOf({ requests: { ...requests, failed_share: null } }))).toBeNaN();
  });
});

describe('the result that is shown first', () => {
  const step = (name: string | null, values: Partial<LoadSummary> = {}) => ({
    ...resultOf(timelineOf([])),
    step: name,
    summary: summaryOf(values),
  });
  const expects = (that: string, outcome: Outcome) => ({ that, measured: '', outcome });
  const results = [step('warm up'), step('well'), step('broken'), step('well again')];
  const first = (of: Result[], ...expectations: Expectation[]) => firstShown('web', of, expectations);

  it('is that of a step whose expectation fails', () => {
    const well = expects("'well': web errors < 1%", 'invalid');
    expect(first(results, well, expects("'broken': web errors < 1%", 'fail'))).toBe(2);
    expect(first(results, well)).toBe(1);
    expect(first(results, expects("'well again': web p99 < 1s", 'pass'))).toBe(3);
  });

  it('is not that of another load, nor a warm-up', () => {
    expect(first(results, expects("'broken': api errors < 1%", 'fail'))).toBe(1);
    expect(first(results, expects("'broken': web-2 errors < 1% and my-web errors < 1%", 'fail'))).toBe(1);
    expect(first([...results, step('web down')], expects("'web down': api errors < 1%", 'fail'))).toBe(1);
    expect(first(results, expects("'broken': recovery(web.good) < 1s", 'fail'))).toBe(2);
    expect(first([results[0]])).toBe(0);
    const invalid = { valid: false, reasons: [], loosened: [] };
    expect(first([results[0], step('well', { validity: invalid }), results[2]])).toBe(2);
    expect(first([step(null)])).toBe(0);
  });

  it('is that of a search', () => {
    const capacity = { knee: null } as unknown as Capacity;
    expect(first([...results, step('knee', { capacity })], expects("'broken': web errors < 1%", 'fail'))).toBe(4);
  });
});

describe('lines of several results', () => {
  it('hold within a result and break between results', () => {
    const results = [timelineOf([[[20, 4]], [[20, 6]]]), timelineOf([[[20, 9]]], 10)].map(resultOf);
    const good = line(results, ({ good }, slot) => good[slot]);
    expect([0, 1.9, 2.5, 10.5, 11.5].map((t) => valueAt(good, t))).toEqual([4, 6, NaN, 9, NaN]);
    expect(line([resultOf(timelineOf([]))], () => 1).t).toHaveLength(0);
  });

  it('make no rate of a few requests in a partial slot, nor of what came after the end', () => {
    const timeline = timelineOf([[[20, 20]], [[20, 20]], [[20, 1]], [[20, 9]]]);
    timeline.length.set([1, 1, 0.004, 0.01]);
    timeline.t.set([0, 1, 2, 2.004]);
    const result = resultOf(timeline);
    result.summary.sending_s = 2.004;
    const { v } = perSecond([result], 'good');
    expect([...v].map((n) => Math.round(n))).toEqual([20, 20, 21, NaN, NaN]);
    timeline.length[2] = 0.9;
    expect(perSecond([result], 'good').v[2]).toBeCloseTo(1 / 0.9);
  });
});

describe('the gap between intended and actual', () => {
  const latency = (intended: object, actual: object) => summaryOf({ latency: { intended: times(intended), actual: times(actual) } });

  it('is explained where it begins and where it is widest', () => {
    const text = gap(latency({ p50: 0.002, p90: 0.059, p99: 0.728 }, { p50: 0.002, p90: 0.0034, p99: 0.005 }));
    expect(text).toMatch(/^They part at p90\. At p99 an answer came 728 ms after it was due and 5\.00 ms after/);
  });

  it('is told by its cause: requests before them, or the generator', () => {
    const both = { intended: times({ p50: 0.002, p90: 0.003 }), actual: times({ p50: 0.002, p90: 0.002 }) };
    const of = (count: number, p90: number) =>
      gap(summaryOf({ latency: both, lateness: times({ count, p90 }), requests: { ...summaryOf().requests, sent: 1000 } }));
    expect(of(1000, 0.001)).toMatch(/the generator was late itself, and nothing held the requests up/);
    expect(of(995, 0.001)).toMatch(/the generator was late itself, and nothing held the requests up/);
    expect(of(700, 0.00002)).toMatch(/those before them were slow\. Users feel the former/);
    expect(of(950, 0.00002)).toMatch(/too few waited to be sent/);
    expect(of(700, 0.001)).toMatch(/were slow, and the generator was late itself/);
    const agree = { intended: times({ p50: 0.01 }), actual: times({ p50: 0.0099 }) };
    const late = gap(summaryOf({ latency: agree, lateness: times({ p50: 0.00009, p95: 0.000251 }) }));
    expect(late).toBe('The two agree to a tenth. The generator was late itself: p95 of that is 251 µs.');
  });

  it('is none when small in itself or next to the value', () => {
    const same = 'The two agree: requests were sent when they were due.';
    expect(gap(latency({ p50: 0.00019 }, { p50: 0.0001 }))).toBe(same);
    expect(gap(latency({ p50: 1.05 }, { p50: 1 }))).toBe(same);
  });

  it('is not told of a closed loop, nor of too few answers', () => {
    expect(gap(summaryOf({ model: 'closed' }))).toMatch(/^A closed loop has no intended send time/);
    expect(gap(summaryOf())).toMatch(/too few/);
  });
});

describe('the generator', () => {
  it('is ok unless a check blames it', () => {
    const check = (name: string) => summaryOf({ validity: { valid: false, reasons: [{ check: name, found: '', help: '' }], loosened: [] } });
    expect(health(summaryOf()).ok).toBe(true);
    expect(health(check('in-flight-cap')).ok).toBe(true);
    expect(health(check('generator-late')).ok).toBe(false);
  });

  it('shows what it used and how late it was, as far as that is known', () => {
    expect(health(summaryOf({ lateness: times({ p99: 42e-6, max: 0.001 }) })).facts.join()).toBe(
      'busiest thread 38.0 % of a core,99 % of sends at most 42.0 µs late,steal 0.0 %',
    );
    expect(health(summaryOf({ lateness: times({ max: 0.001 }) })).facts[1]).toBe('all sends at most 1.00 ms late');
    expect(health(summaryOf()).facts).toHaveLength(2);
  });

  it('says of the worst steal that it was that of a part', () => {
    const { generator } = summaryOf();
    const stolen = summaryOf({ generator: { ...generator, steal: 0.025 } });
    expect(health(stolen, timelineOf([[], []]).length).facts[1]).toBe('steal up to 2.5 % in the worst 1.00 s');
    expect(health(stolen).facts[1]).toMatch(/in the worst 3/);
    expect(health(summaryOf(), timelineOf([[]]).length).facts[1]).toBe('steal 0.0 %');
  });

  it('says how many answers came after the end', () => {
    expect(afterEnd(1)).toBe('1 answer came after the end: it counts, but no rate has it.');
    expect(afterEnd(1200)).toBe('1,200 answers came after the end: they count, but no rate has them.');
  });

  it('says how high a rate may have been without the generator', () => {
    const rates = { asked: 100, sent: 88, good: 88 };
    expect(atBest(rates)).toBe(null);
    expect(atBest({ ...rates, good_at_best: null })).toBe(null);
    expect(atBest({ ...rates, good_at_best: 88.1 })).toBe(null);
    expect(atBest({ ...rates, asked: null, good_at_best: 100 })).toBe(null);
    expect(atBest({ ...rates, good_at_best: 100 })).toBe('Good answers may have been up to 100/s but for the generator, which was late.');
  });
});

describe('capacity', () => {
  const knee = { rate: 8400, low: 8249, high: 8551, confidence: 0.9 };
  const capacity = (values: Partial<Capacity>): Capacity => ({
    slo: '',
    points: [],
    knee,
    physical: null,
    limit: 'target',
    note: '',
    usl: { refused: '' },
    ...values,
  });
  const hold = (in_flight: number, invalid: string[] = []): Hold => ({
    rate: 1,
    sent: 1,
    good_rate: 1,
    p50: null,
    p99: null,
    errors: 0,
    in_flight,
    length_s: 1,
    good: true,
    invalid,
    purpose: 'bracket',
  });
  const fit: Fit = { lambda: 100, alpha: 0.02, beta: 0.001, peak: null, note: '' };

  it('a knee has its interval, and is a lower bound when something else was the limit', () => {
    expect(estimate(knee)).toBe('8,400/s (8,249/s to 8,551/s with 90 %)');
    expect(kneeText(capacity({}))).toMatch(/^The objective holds up to 8,400\/s/);
    expect(kneeText(capacity({ limit: 'generator' }))).toMatch(/at least 8,400.*generator, or the machine it shares, was the limit/);
    expect(kneeText(capacity({ limit: 'range' }))).toMatch(/at least 8,400.*highest rate that was tried held/);
    expect(kneeText(capacity({ knee: null, limit: 'none' }))).toBe('No knee was found.');
    expect(kneeText(capacity({ knee: null, limit: 'unsure' }))).toMatch(/^No knee is told/);
  });

  it('a hold that the guard refuses is neither good nor bad', () => {
    expect([hold(1), { ...hold(1), good: false }, hold(1, ['steal'])].map(endedOf)).toEqual(['good', 'bad', 'invalid']);
  });

  it('the law is drawn over what was seen, and to the peak only where it is told', () => {
    expect(usl(fit, 1)).toBe(100);
    expect(uslSpan(fit, [hold(2), hold(20), hold(90, ['steal'])])).toEqual([2, 20]);
    const peak = { rate: 31, low: 25, high: 40, confidence: 0.9 };
    expect(uslSpan({ ...fit, peak }, [hold(2), hold(20)])).toEqual([2, 40]);
    expect(uslSpan(fit, [hold(2)])).toBeNull();
    expect(uslSpan(fit, [])).toBeNull();
  });
});
