import { expect, test } from 'vitest';
import { keep, kept } from '../src/state/kept';
import { TimeAxis, zoomOf } from '../src/state/axis.svelte';
import { LifeView } from '../src/state/life.svelte';
import { livesOf } from './lives';

test('what is chosen is kept until it is chosen no longer', () => {
  const texts = new Map<string, string>();
  const where = () => ({
    getItem: (name: string) => texts.get(name) ?? null,
    setItem: (name: string, text: string) => void texts.set(name, text),
    removeItem: (name: string) => void texts.delete(name),
  });
  expect(kept(where, 'theme')).toBeNull();
  keep(where, 'theme', 'dark');
  expect(kept(where, 'theme')).toBe('dark');
  keep(where, 'theme', null);
  expect(kept(where, 'theme')).toBeNull();
});

test('a browser that keeps nothing is no error', () => {
  const where = () => {
    throw new Error('denied');
  };
  keep(where, 'theme', 'dark');
  expect(kept(where, 'theme')).toBeNull();
});

test('a zoom that was kept is one of this run, or none', () => {
  expect(zoomOf('[2,4]', [0, 10])).toEqual([2, 4]);
  expect(zoomOf('[8,12]', [0, 10])).toEqual([6, 10]);
  for (const text of [null, '', 'x', '[2]', '[2,"4"]', '[4,2]', '[2,null]', '[20,30]', '[0,10]', '{}']) {
    expect(zoomOf(text, [0, 10])).toBeNull();
  }
});

test('a zoom of rows is kept with their order, and is one of this lifecycle, or none', () => {
  const lives = livesOf([[0, 1], [1, 2], [2, 9], [3, 4]]);
  const view = () => new LifeView(lives, new TimeAxis([0, 10]));
  const before = view();
  expect(before.rowsAsText).toBeNull();
  before.setSort({ phase: 0 });
  before.zoomRows(1, 3);
  const after = view();
  after.zoomToText(before.rowsAsText);
  expect([after.sort, after.rows]).toEqual([{ phase: 0 }, [1, 3]]);
  const wrong = [null, '', 'x', '{}', '["start",1]', '["start",2,1]', '["start",-1,2]', '["start",0,5]', '["start",0.5,2]'];
  for (const text of [...wrong, '["start",null,2]', '["height",0,2]', '[{"phase":1},0,2]', '["group",0,2]']) {
    const other = view();
    other.zoomToText(text);
    expect([other.sort, other.zoomedRows]).toEqual(['start', null]);
  }
});
