import { expect, test } from 'vitest';
import { TimeAxis } from '../src/state/axis.svelte';
import { LifeView } from '../src/state/life.svelte';
import { livesOf } from './lives';

test('keys move and zoom a stretch within the run, and never out of it', () => {
  const axis = new TimeAxis([0, 10]);
  axis.pan(1);
  expect(axis.zoomed).toBeNull();
  axis.zoom(2, 4);
  axis.pan(0.5);
  expect(axis.span).toEqual([3, 5]);
  axis.pan(-9);
  expect(axis.span).toEqual([0, 2]);
  for (let n = 0; n < 99; n++) axis.pan(1 / 8);
  expect(axis.span).toEqual([8, 10]);
  axis.scale(2);
  expect(axis.span).toEqual([6, 10]);
  axis.scale(1 / 2);
  expect(axis.span).toEqual([7, 9]);
  axis.scale(8);
  expect(axis.zoomed).toBeNull();
});

test('half of a run and twice that is the run, whatever its length', () => {
  for (const length of [0.3, 10.123, 1 / 3, 86_399.7]) {
    const axis = new TimeAxis([0, length]);
    axis.scale(1 / 2);
    axis.scale(2);
    expect(axis.zoomed).toBeNull();
  }
});

test('a stretch is shown with what is around it as far as the run goes, also one without a length', () => {
  const axis = new TimeAxis([0, 10]);
  const shown = (...stretch: Parameters<TimeAxis['show']>) => {
    axis.show(...stretch);
    return axis.span;
  };
  expect(shown(2, 4, 1, 2)).toEqual([0, 8]);
  expect(shown(1, 4, 1, 2)).toEqual([0, 10]);
  expect(shown(4, 5)).toEqual([4, 5]);
  expect(shown(5, 5, 1, 2)).toEqual([4.5, 5.5]);
  expect(shown(0, 0)).toEqual([0, 0.5]);
});

test('keys on a lifecycle reach the whole run, and neither its time nor their own is left', () => {
  const axis = new TimeAxis([0, 10]);
  const view = new LifeView(livesOf([[0, 1], [1, 2]]), axis);
  for (let n = 0; n < 20; n++) view.moveTime(0, 2);
  expect(view.span[0]).toBeCloseTo(-0.02);
  expect(view.span[1]).toBe(10);
  axis.zoom(1, 2);
  for (let n = 0; n < 99; n++) view.moveTime(1 / 8, 1);
  expect(view.span[0]).toBeCloseTo(9);
  expect(view.span[1]).toBeCloseTo(10);
  view.setAlign('start');
  view.moveTime(-1 / 8, 1);
  view.moveTime(0, 2);
  expect(view.span[0]).toBeCloseTo(-0.01);
  expect(view.span[1]).toBeCloseTo(1.01);
});
