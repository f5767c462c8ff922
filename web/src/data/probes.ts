/** What probes came to, in words. Pure functions. */

import { count } from '../chart/scales';
import type { ProbeSummary } from './run';

/** A number whose unit nobody knows, in at most six digits; a dash for no value. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return '–';
  return String(Number(value.toPrecision(6)));
}

/** How often a copy was asked, and how often in vain. */
export function probeText({ of, tries, failed, skipped, error }: ProbeSummary): string {
  const parts = [tries === 1 ? '1 try' : `${count(tries)} tries`];
  if (tries > 0 && failed === tries) parts.push(`none was answered: ${error}`);
  else if (failed) parts.push(`${count(failed)} failed, the last: ${error}`);
  if (skipped) parts.push(`${count(skipped)} skipped`);
  return (of ? `${of}: ` : '') + parts.join('; ');
}
