/** The steps of an endpoint in words, a line each. Pure. */

import { percent } from '../../chart/scales';
import type { Step } from './shapes';

export interface Line {
  text: string;
  depth: number;
}

/** Most lines of one endpoint. */
const MOST = 200;

export function script(steps: readonly Step[]): Line[] {
  const found: Line[] = [];
  const visit = (steps: readonly Step[], depth: number): void => {
    for (const step of steps) {
      if ('work' in step) found.push({ text: `work: ${step.work}`, depth });
      else if ('call' in step) found.push({ text: call(step), depth });
      else if ('sequence' in step) {
        found.push({ text: 'one after the other:', depth });
        visit(step.sequence, depth + 1);
      } else {
        found.push({ text: `at the same time, ${waits(step.join, step.parallel.length)}:`, depth });
        visit(step.parallel, depth + 1);
      }
    }
  };
  visit(steps, 0);
  if (found.length === 0) return [{ text: 'answers at once', depth: 0 }];
  if (found.length <= MOST) return found;
  return [...found.slice(0, MOST), { text: `and ${found.length - MOST} more steps`, depth: 0 }];
}

function waits(join: 'all' | number, branches: number): string {
  return join === 'all' ? 'waiting for all' : `waiting for ${join} of ${branches}`;
}

function call(step: Extract<Step, { call: unknown }>): string {
  const parts = [`call ${step.call ?? 'an unknown service'}`];
  if (step.path !== null && step.path !== '/') parts.push(`at ${step.path}`);
  if (step.probability < 1) parts.push(`in ${percent(step.probability)} of requests`);
  if (!step.wait) parts.push('without waiting');
  return parts.join(' ');
}
