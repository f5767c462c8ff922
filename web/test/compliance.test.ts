import { expect, it } from 'vitest';
import type { Listed } from '../src/compliance/data/shapes';
import { complianceText, having, isEvaluated, percent, shares, STATUSES, statusOf, worstFirst } from '../src/compliance/data/statuses';

const one = (name: string, compliance: number, complianceDetails: Record<string, number> = { error: 100 - compliance }): Listed => ({
  id: `id-${name}`,
  name,
  compliance,
  complianceDetails: compliance === 100 ? { successAlreadyOK: 100 } : complianceDetails,
});

it('shows the worst first, equals by name, and last what nothing is known of', () => {
  const all = [one('good', 100), one('node-10', 40), one('node-9', 40), one('new', 0, { applying: 100 }), one('bad', 0), one('empty', 0, {})];
  const before = all.map(({ name }) => name);
  expect(worstFirst(all).map(({ name }) => name)).toEqual(['bad', 'node-9', 'node-10', 'good', 'empty', 'new']);
  expect(all.map(({ name }) => name)).toEqual(before);
});

it('has heard of what has a status, also one that says that there was no report', () => {
  expect(isEvaluated(undefined)).toBe(false);
  expect(isEvaluated({})).toBe(false);
  expect(isEvaluated({ applying: 60, reportsDisabled: 40 })).toBe(false);
  expect(isEvaluated({ noReport: 100 })).toBe(true);
});

it('tells no number where nothing was heard, in a list and of one alike', () => {
  expect([one('new', 0, { applying: 100 }), one('bad', 0), one('good', 100)].map(complianceText)).toEqual(['not yet', '0.00 %', '100 %']);
});

it('draws good to bad, leaves out what there is nothing of, and keeps a status of a newer server', () => {
  const found = shares({ brandNew: 5, error: 10, noReport: 0, successAlreadyOK: 80, auditNonCompliant: 5 });
  expect(found.map(({ status }) => status.name)).toEqual(['successAlreadyOK', 'auditNonCompliant', 'error', 'brandNew']);
  expect(statusOf('brandNew')).toEqual({ name: 'brandNew', words: 'brandNew', kind: 'unknown' });
  expect(new Set(STATUSES.map(({ words }) => words)).size).toBe(14);
});

it('finds by name and by identity, whatever the case', () => {
  const all = [one('Web-1', 1), one('web-2', 2), one('db', 3)];
  expect(having(all, ' WEB ').map(({ name }) => name)).toEqual(['Web-1', 'web-2']);
  expect(having(all, 'id-db').map(({ name }) => name)).toEqual(['db']);
  expect(having(all, '')).toHaveLength(3);
  expect(having(all, 'none')).toEqual([]);
});

it('never says 100 % of what is less', () => {
  expect([100, 99.99, 99.95, 50, 9.876, 0].map(percent)).toEqual(['100 %', '99.9 %', '99.9 %', '50.0 %', '9.88 %', '0.00 %']);
});
