import { expect, test } from 'vitest';
import { keep, kept } from '../src/state/kept';
import { zoomOf } from '../src/state/axis.svelte';

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
