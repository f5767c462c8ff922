import { expect, it } from 'vitest';
import { statesOf, type State } from '../src/data/counts';

const state = (name: string, ...points: [number, number][]): State => ({
  name,
  t: Float64Array.from(points, ([t]) => t),
  v: Float64Array.from(points, ([, v]) => v),
});

const tasks = [
  state('completed', [0, 0], [3, 4]),
  state('desired', [0, 0], [1, 4]),
  state('failed', [0, 0]),
  state('running', [0, 0], [2, 3], [3, 0]),
];

it('states come in the order of their first entity; those without one are only named', () => {
  const { drawn, never } = statesOf(tasks, 9);
  expect(drawn.map(({ name }) => name)).toEqual(['desired', 'running', 'completed']);
  expect(never).toEqual(['failed']);
});

it('a number holds until the end of the run', () => {
  const [desired, running] = statesOf(tasks, 9).drawn;
  expect([[...desired.t], [...desired.v]]).toEqual([[0, 1, 9], [0, 4, 4]]);
  expect([...running.v]).toEqual([0, 3, 0, 0]);
  expect([...statesOf(tasks, 1).drawn[0].t]).toEqual([0, 1]);
});

it('a state that only grows is a total, when others fall', () => {
  expect(statesOf(tasks, 9).drawn.map(({ total }) => total)).toEqual([true, false, true]);
  expect(statesOf([state('a', [0, 1]), state('b', [0, 2], [1, 3])], 9).drawn.map(({ total }) => total)).toEqual([false, false]);
  expect(statesOf([state('empty')], 9)).toEqual({ drawn: [], never: ['empty'] });
});
