/** Numbers of entities by state: what to draw of them, and how. Pure functions. */

import type { Points } from './decode';

export interface State extends Points {
  name: string;
}

/** A state as it is drawn. */
export interface DrawnState extends State {
  /** Does it only ever grow, while others of its kind fall? */
  total: boolean;
}

/**
 * States in the order in which they first have an entity, and the names of those that
 * never have one. A number holds until it changes, and the last one until `end`.
 */
export function statesOf(states: State[], end: number): { drawn: DrawnState[]; never: string[] } {
  const moved = states.map((state) => ({ state, at: state.v.findIndex((n) => n !== 0) }));
  const some = moved
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.state.t[a.at] - b.state.t[b.at])
    .map(({ state }) => state);
  const falls = some.map(({ v }) => v.some((n, i) => n < v[i - 1]));
  return {
    drawn: some.map((state, i) => ({
      ...held(state, end),
      name: state.name,
      total: !falls[i] && falls.includes(true),
    })),
    never: moved.filter(({ at }) => at < 0).map(({ state }) => state.name),
  };
}

function held({ t, v }: Points, end: number): Points {
  if (t.length === 0 || t[t.length - 1] >= end) return { t, v };
  return { t: Float64Array.of(...t, end), v: Float64Array.of(...v, v[v.length - 1]) };
}
