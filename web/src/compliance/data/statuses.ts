/** The statuses of compliance, and the order in which they are shown. */

import type { Details, Listed } from './shapes';

/** How a status is to be seen: as good, as bad, as something that nobody knows, or as nothing. */
export type Kind = 'good' | 'bad' | 'unknown' | 'none';

export interface Status {
  name: string;
  words: string;
  kind: Kind;
}

/** All of the API's, best first: so a bar reads from left to right. */
export const STATUSES: readonly Status[] = [
  { name: 'successAlreadyOK', words: 'success', kind: 'good' },
  { name: 'successRepaired', words: 'repaired', kind: 'good' },
  { name: 'successNotApplicable', words: 'not applicable', kind: 'good' },
  { name: 'auditCompliant', words: 'compliant', kind: 'good' },
  { name: 'auditNotApplicable', words: 'audit not applicable', kind: 'good' },
  { name: 'reportsDisabled', words: 'reports disabled', kind: 'none' },
  { name: 'applying', words: 'applying', kind: 'none' },
  { name: 'noReport', words: 'no report', kind: 'unknown' },
  { name: 'unexpectedMissingComponent', words: 'missing', kind: 'unknown' },
  { name: 'unexpectedUnknownComponent', words: 'unexpected', kind: 'unknown' },
  { name: 'badPolicyMode', words: 'wrong policy mode', kind: 'unknown' },
  { name: 'auditNonCompliant', words: 'not compliant', kind: 'bad' },
  { name: 'auditError', words: 'audit error', kind: 'bad' },
  { name: 'error', words: 'error', kind: 'bad' },
];

const BY_NAME = new Map(STATUSES.map((status) => [status.name, status]));

/** A status by the API's name; one of a newer server is shown by that name. */
export function statusOf(name: string): Status {
  return BY_NAME.get(name) ?? { name, words: name, kind: 'unknown' };
}

/** The shares there are, in the order of `STATUSES`; statuses that are not known come last. */
export function shares(details: Details | undefined): { status: Status; percent: number }[] {
  const place = (status: Status) => (STATUSES.indexOf(status) + STATUSES.length + 1) % (STATUSES.length + 1);
  return Object.entries(details ?? {})
    .filter(([, percent]) => percent > 0)
    .map(([name, percent]) => ({ status: statusOf(name), percent }))
    .sort((a, b) => place(a.status) - place(b.status));
}

/** Does anything count of what is expected of it? That there was no report does; what is not due yet does not. */
export const isEvaluated = (details: Details | undefined) => shares(details).some(({ status }) => status.kind !== 'none');

/** The compliance of one that is listed, unless nothing of it counts. */
export const complianceText = ({ compliance, complianceDetails }: Pick<Listed, 'compliance' | 'complianceDetails'>) =>
  isEvaluated(complianceDetails) ? percent(compliance) : 'not yet';

/** Worst first; what has nothing to comply with comes last, and equals by name. */
export function worstFirst<T extends Listed>(all: readonly T[]): T[] {
  const keyed = all.map((one) => ({ one, key: isEvaluated(one.complianceDetails) ? one.compliance : Infinity }));
  const order = new Intl.Collator('en', { numeric: true }).compare;
  keyed.sort((a, b) => (a.key === b.key ? order(a.one.name, b.one.name) : a.key - b.key));
  return keyed.map(({ one }) => one);
}

/** Those whose name or identity has the text, whatever its case. */
export function having<T extends Listed>(all: readonly T[], text: string): T[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return [...all];
  return all.filter(({ id, name }) => name.toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted));
}

/** A percentage, never rounded up to a whole hundred. */
export const percent = (value: number) => `${value >= 100 ? '100' : Math.min(value, 99.99).toFixed(value < 10 ? 2 : 1).replace('100.0', '99.9')} %`;
