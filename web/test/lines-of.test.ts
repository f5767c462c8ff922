import { describe, expect, it } from 'vitest';
import { command, commandLine, linesOf } from '../src/data/lines';
import { livesOf } from './lives';

describe('log lines of an entity', () => {
  const lives = {
    ...livesOf([[0, 1], [0, null], [2, 3]]),
    lines: () => ({
      files: ['logs/a.log', 'logs/b.err.log'],
      entities: [
        { row: 2, more: 4, lines: [{ file: 1, number: 12, text: '{"a"', cut: true, points: [0, 1] }] },
        { row: 0, more: 0, lines: [{ file: 0, number: 1, text: 'whole', cut: false, points: [] }] },
      ],
    }),
  };

  it('say where they stand and what they made', () => {
    expect(linesOf(lives, 2)).toEqual({ more: 4, lines: [{ place: 'logs/b.err.log:12', text: '{"a"…', points: ['p0', 'p1'] }] });
    expect(linesOf(lives, 0)?.lines[0].text).toBe('whole');
  });

  it('are not there for others', () => {
    expect(linesOf(lives, 1)).toBeNull();
    expect(linesOf(livesOf([[0, 1]]), 0)).toBeNull();
  });

  it('a command is one line that a shell reads back', () => {
    expect(commandLine(['headroom', 'load', 'http://h/', '--rate', '50/s'])).toBe('headroom load http://h/ --rate 50/s');
    expect(commandLine(['a', '--expect', "p99 < 20ms, it's", '', 'x?y&z'])).toBe("a --expect 'p99 < 20ms, it'\\''s' '' 'x?y&z'");
  });

  it('are found by a command that no id breaks out of', () => {
    expect(command('7c1f-0a')).toBe("grep -nF -- '7c1f-0a' logs/*.log");
    expect(command('process/3')).toBe("grep -nF -- 'process' logs/*.log | grep -F -- '3'");
    expect(command("a'; rm -rf ~")).toBe("grep -nF -- 'a'\\''; rm -rf ~' logs/*.log");
    expect(command('/')).toBe("grep -nF -- '/' logs/*.log");
  });
});
