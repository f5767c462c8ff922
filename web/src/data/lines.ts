/** Log lines of an entity. Pure functions. */

import type { Lives } from './lives';

/** A line, and the points whose times come from it. */
export interface LogLine {
  place: string;
  text: string;
  points: string[];
}

/** The log lines of an entity that the page has, and how many more there are; null: none. */
export function linesOf(lives: Lives, entity: number): { lines: LogLine[]; more: number } | null {
  const all = lives.lines();
  const own = all?.entities.find(({ row }) => row === entity);
  if (!all || !own) return null;
  const lines = own.lines.map(({ file, number, text, cut, points }) => ({
    place: `${all.files[file]}:${number}`,
    text: cut ? `${text}…` : text,
    points: points.map((point) => lives.points[point]),
  }));
  return { lines, more: own.more };
}

/**
 * The command that shows the log lines of an entity, in the folder of its run. An entity that never came to an id
 * goes by the texts of several fields, joined by `/`.
 */
export function command(id: string): string {
  const [first, ...rest] = id.split('/').filter((part) => part !== '').map(quoted);
  return [`grep -nF -- ${first ?? quoted(id)} logs/*.log`, ...rest.map((part) => `grep -F -- ${part}`)].join(' | ');
}

/** Words of a command as one line that a shell reads back as them: those are quoted that need it. */
export const commandLine = (words: string[]): string =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) && !word.startsWith('=') ? word : quoted(word))).join(' ');

/** As a shell reads it back. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
