/**
 * What the page itself does for an update of a run of many entities, without a browser: `speed-updates.mjs` runs it.
 *
 * The same run as `crowd.mjs` makes. Each update is what the server would send for so many entities that pass their last point.
 */

import { Redrawing } from '../src/chart/redraw';
import type { Crowd } from '../src/chart/places';
import { Growing, type Sent } from '../src/data/growing';
import { order, type Sort } from '../src/data/order';
import type { Lives } from '../src/data/lives';
import type { Grown } from '../src/data/run';

const POINTS = 16;
const SPAN_US = 1.2e9;
const [WIDTH, HEIGHT] = [1143, 440];
/** Updates that are not counted, as code is compiled in them, and that are. */
const [FIRST, COUNTED] = [6, 15];
/** A part of the time and of the rows is spare, as on the page. */
const SPARE = 17 / 16;

export function measure(entities: number, changes: number): void {
  let state = 16;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const at = Array.from({ length: POINTS }, () => new Int32Array(entities).fill(-1));
  for (let entity = 0; entity < entities; entity++) {
    let t = Math.floor((entity * SPAN_US) / entities);
    for (let point = 0; point < POINTS - 1; point++) {
      at[point][entity] = t;
      t += Math.floor(-Math.log(1 - random()) * 60e3 * (random() < 1e-3 ? 20 : 1));
    }
  }
  const head = { name: 'task', points: at.map((_, i) => `p${i}`), origin_s: 0, unit_s: 1e-6, entities, form: [8], odd: [], texts: [], at: 0 };
  const sent = (rows: Int32Array, whole: boolean): Sent => {
    const columns = [...(whole ? [] : [rows]), ...at.map((numbers) => rows.map((row) => numbers[row])), rows.map((row) => row % 100)];
    const numbers = new Int32Array(rows.length * (columns.length + (whole ? 1 : 0)));
    columns.forEach((column, n) => numbers.set(column, n * rows.length));
    if (whole) numbers.set(rows, columns.length * rows.length);
    const groups = whole ? Array.from({ length: 100 }, (_, i) => `cell-${i}`) : [];
    const grown: Grown = { ...head, whole, rows: rows.length, named: whole ? rows.length : 0, groups_from: whole ? 0 : 100, groups };
    return { bytes: numbers.buffer, at: 0, grown: [grown] };
  };

  const growing = new Growing();
  const redrawing = new Redrawing();
  let [lives] = growing.take(sent(Int32Array.from({ length: entities }, (_, i) => i), true));
  let [now, next, jumps] = [SPAN_US * 1.05, 0, 0];
  for (const [what, sort, allOver] of [
    ['sorted by start, changes in the order of start', 'start', false],
    ['sorted by start, changes from all over', 'start', true],
    ['sorted by total time, changes from all over', 'total', true],
  ] as [string, Sort, boolean][]) {
    const costs: number[] = [];
    for (let update = 0; update < FIRST + COUNTED; update++) {
      now += 200_000;
      const rows = Int32Array.from({ length: changes }, () => (allOver ? Number((BigInt(jumps++) * 618_033n) % BigInt(entities)) : next++ % entities));
      for (const row of rows) at[POINTS - 1][row] = now;
      const newer = sent(rows, false);
      const before = process.cpuUsage();
      [lives] = growing.take(newer);
      const scene = sceneOf(lives, sort);
      redrawing.picture(scene);
      const { user, system } = process.cpuUsage(before);
      if (update >= FIRST) costs.push((user + system) / 1000);
      const work = redrawing.prepare(scene);
      while (work && !work.next().done);
    }
    costs.sort((a, b) => a - b);
    console.log(`${what}: ${costs[COUNTED >> 1].toFixed(0)} ms of processor time an update (least ${costs[0].toFixed(0)})${redrawing.whole ? '' : ', drawn quickly'}`);
  }
}

function sceneOf(lives: Lives, sort: Sort): Crowd {
  const survey = lives.cache!.survey(lives)!;
  return {
    lives,
    order: order(lives, sort),
    rows: [0, Math.ceil(lives.count * SPARE)],
    align: 'run',
    span: [0, (SPAN_US * 1.05 * SPARE) / 1e6],
    width: WIDTH,
    height: HEIGHT,
    shown: lives.points.slice(1).map(() => true),
    long: survey.long,
    survey,
  };
}
