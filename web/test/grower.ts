/** A lifecycle that grows, and what its server sends of it: a twin of `crates/lab/report/src/growing`, for the tests. */

import type { Sent } from '../src/data/growing';
import { NONE } from '../src/data/lives';

export interface Entity {
  id: string;
  group: string | null;
  /** Numbers, `NONE` where a point was not seen. */
  at: number[];
  changed: number;
  named: number;
}

const isHex = (id: string) => /^[0-9a-f]{8}$/.test(id);

export class Grower {
  moment = 0;
  readonly entities: Entity[] = [];
  private readonly groups: { name: string; since: number }[] = [];
  /** Who has the picture of an earlier moment gets a whole one. */
  whole = 0;

  constructor(readonly points: number) {}

  add(id: string, group: string | null, at: number[]): void {
    this.entities.push({ id, group, at, changed: this.moment, named: this.moment });
    if (group !== null && !this.groups.some(({ name }) => name === group)) this.groups.push({ name: group, since: this.moment });
  }

  change(entity: number, at: number[]): void {
    Object.assign(this.entities[entity], { at, changed: this.moment });
  }

  /** One is no more, and the last one takes its place. */
  remove(entity: number): void {
    const last = this.entities.pop()!;
    if (entity < this.entities.length) this.entities[entity] = { ...last, changed: this.moment, named: this.moment };
  }

  since(moment: number): Sent {
    const whole = moment < this.whole || moment === 0;
    const known = whole ? -1 : moment;
    const all = [...this.entities.keys()].filter((i) => this.entities[i].changed > known);
    const isNamed = (i: number) => this.entities[i].named > known;
    const rows = [...all.filter(isNamed), ...all.filter((i) => !isNamed(i))];
    const named = rows.filter(isNamed).length;
    const numbers = whole ? [] : [...rows];
    for (let point = 0; point < this.points; point++) numbers.push(...rows.map((i) => this.entities[i].at[point]));
    numbers.push(...rows.map((i) => this.groups.findIndex(({ name }) => name === this.entities[i].group)));
    const ids = rows.slice(0, named).map((i) => this.entities[i].id);
    const bytes = new Uint8Array(4 * numbers.length + 4 * named);
    bytes.set(new Uint8Array(Int32Array.from(numbers).buffer));
    ids.forEach((id, k) => isHex(id) && bytes.set(id.match(/../g)!.map((two) => parseInt(two, 16)), 4 * (numbers.length + k)));
    const odd = [...ids.keys()].filter((k) => !isHex(ids[k]));
    const from = this.groups.filter(({ since }) => since <= known).length;
    return {
      bytes: bytes.buffer,
      at: 0,
      grown: [
        {
          name: 'task',
          points: Array.from({ length: this.points }, (_, i) => `p${i}`),
          origin_s: 0,
          unit_s: 1e-6,
          entities: this.entities.length,
          whole,
          rows: rows.length,
          named,
          form: [8],
          odd,
          texts: odd.map((k) => ids[k]),
          groups_from: from,
          groups: this.groups.slice(from).map(({ name }) => name),
          at: 0,
        },
      ],
    };
  }
}

/** Times of an entity that may lack points and run backwards; only the first `seen` points are there. */
export function times(random: () => number, points: number, seen: number): number[] {
  let at = Math.floor(random() * 1000);
  return Array.from({ length: points }, (_, point) => {
    at += Math.floor(random() ** 4 * 1000) - (random() < 0.03 ? 300 : 0);
    return point >= seen || random() < 0.05 ? NONE : Math.max(at, 0);
  });
}
