import { expect, it } from 'vitest';
import type { Crowd } from '../src/chart/places';
import { rasterise } from '../src/chart/raster';
import { redrawn, Redrawing } from '../src/chart/redraw';
import { Growing, still } from '../src/data/growing';
import { order, type Sort } from '../src/data/order';
import type { Align, Lives } from '../src/data/lives';
import { done } from '../src/data/stats';
import { survey } from '../src/data/survey';
import { SurveyKeeper } from '../src/data/survey_keeper';
import { Grower, times } from './grower';
import { livesOf } from './lives';
import { dice } from './packed';

const POINTS = 5;

function sceneOf(lives: Lives, sort: Sort, align: Align): Crowd {
  const known = done(survey(lives));
  return {
    lives,
    order: order(lives, sort).slice(),
    rows: [0, 512],
    align,
    span: align === 'run' ? [0, 4e-3] : [-1e-3, 2e-3],
    width: 60,
    height: 32,
    shown: [true, true, true, true],
    long: known.long,
    survey: known,
  };
}

it('a picture in which only what changed was drawn anew is as one that is new', () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = dice(seed);
    const upTo = (n: number) => Math.floor(random() * n);
    const [sort, align] = ([['start', 'run'], ['end', 'run'], ['total', 2], ['group', 'start']] as const)[seed % 4];
    const grower = new Grower(POINTS);
    const growing = new Growing();
    grower.moment = 1;
    for (let n = 0; n < 300; n++) grower.add(n.toString(16).padStart(8, '0'), `cell-${n % 7}`, times(random, POINTS, POINTS));
    let scene = sceneOf(growing.take(grower.since(0))[0], sort, align);
    let codes = rasterise(scene);
    for (let step = 0; step < 25; step++) {
      const { moment } = grower;
      grower.moment++;
      for (let n = upTo(4); n > 0; n--) grower.add((1000 * step + n).toString(16).padStart(8, '0'), null, times(random, POINTS, POINTS));
      for (let n = upTo(4); n > 0; n--) grower.change(upTo(grower.entities.length), times(random, POINTS, 1 + upTo(POINTS)));
      if (random() < 0.2) grower.remove(upTo(grower.entities.length));
      const sent = grower.since(moment);
      const changed = new Int32Array(sent.bytes, 0, sent.grown[0].rows).slice();
      const now = sceneOf(growing.take(sent)[0], sort, align);
      const mended = redrawn({ scene, codes }, now, changed);
      expect([...mended!], `seed ${seed}, step ${step}`).toEqual([...rasterise({ ...now, lives: still(now.lives) })]);
      [scene, codes] = [now, mended!];
    }
  }
});

it('a picture of another place, or of too much that changed, is made anew', () => {
  const at = [0, 9].map((later) => Int32Array.from({ length: 200_000 }, (_, n) => n + later));
  const lives: Lives = { ...livesOf([]), count: 200_000, points: ['a', 'b'], at, first: at[0], last: at[1], origin: 0, unit: 1e-6 };
  const byStart = order(lives, 'start');
  const known = done(survey(lives));
  const scene: Crowd = { lives, order: byStart, rows: [0, 200_000], align: 'run', span: [0, 1], width: 20, height: 10, shown: [true], long: known.long, survey: known };
  const before = { scene, codes: rasterise(scene) };
  const none = new Int32Array(0);
  expect(redrawn(before, scene, none)).toEqual(before.codes);
  for (const change of [{ span: [0, 2] as const }, { rows: [0, 100] as const }, { width: 21 }, { shown: [false] }, { align: 'start' as const }]) {
    expect(redrawn(before, { ...scene, ...change }, none)).toBeNull();
  }
  expect(redrawn(before, scene, Int32Array.of(7))).toEqual(before.codes);
  const all = new Int32Array(200_000);
  for (let i = 0; i < all.length; i++) all[i] = i;
  expect(redrawn(before, scene, all)).toBeNull();
});

it('pictures of entities that grow count everybody, however they are sorted, whenever they were all looked at', () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = dice(seed);
    const upTo = (n: number) => Math.floor(random() * n);
    const align: Align = (['run', 'start', 2] as const)[seed % 3];
    const grower = new Grower(POINTS);
    const growing = new Growing();
    grower.moment = 1;
    for (let n = 0; n < 400; n++) grower.add(n.toString(16).padStart(8, '0'), `cell-${n % 7}`, times(random, POINTS, POINTS));
    let [lives] = growing.take(grower.since(0));
    const keeper = new SurveyKeeper(lives);
    const sceneNow = (sort: Sort): Crowd => {
      const known = keeper.survey(lives);
      return { ...sceneOf(lives, sort, align), long: known.long, survey: known };
    };
    let sort: Sort = 'start';
    const redrawing = new Redrawing();
    redrawing.picture(sceneNow(sort));
    const first = sceneNow(sort);
    redrawing.picture(first);
    const work = redrawing.prepare(first, 50)!;
    expect(redrawing.prepare(first)).toBeNull();
    let whole = 0;
    for (let step = 0; step < 30; step++) {
      // It takes eight pieces, between which things change.
      work.next();
      const { moment } = grower;
      grower.moment++;
      for (let n = upTo(3); n > 0; n--) grower.add((1000 * step + n).toString(16).padStart(8, '0'), null, times(random, POINTS, POINTS));
      for (let n = upTo(5); n > 0; n--) grower.change(upTo(grower.entities.length), times(random, POINTS, 1 + upTo(POINTS)));
      if (random() < 0.2) grower.remove(upTo(grower.entities.length));
      const sent = grower.since(moment);
      const rows = new Int32Array(sent.bytes, 0, sent.grown[0].rows).slice();
      keeper.leave(lives, rows, sent.grown[0].entities);
      [lives] = growing.take(sent);
      keeper.enter(lives, rows);
      if (random() < 0.2) sort = (['start', 'end', 'total', 'group'] as const)[upTo(4)];
      const now = sceneNow(sort);
      const codes = redrawing.picture(now);
      if (!redrawing.whole) continue;
      whole++;
      expect([...codes], `seed ${seed}, step ${step}`).toEqual([...rasterise({ ...now, lives: still(lives) })]);
    }
    expect(whole).toBeGreaterThan(15);
    // At another place everybody is looked at again.
    redrawing.picture({ ...sceneNow(sort), span: [0, 1] });
    expect(redrawing.whole).toBe(false);
  }
});

it('a picture whose last one is not known to have changed into it is made anew', () => {
  const random = dice(3);
  const grower = new Grower(POINTS);
  const growing = new Growing();
  grower.moment = 1;
  for (let n = 0; n < 50; n++) grower.add(n.toString(16).padStart(8, '0'), null, times(random, POINTS, POINTS));
  const first = sceneOf(growing.take(grower.since(0))[0], 'start', 'run');
  const redrawing = new Redrawing();
  redrawing.picture(first);
  done(redrawing.prepare(first)!);
  redrawing.picture({ ...first });
  expect(redrawing.whole).toBe(true);
  for (let step = 0; step < 2; step++) {
    const { moment } = grower;
    grower.moment++;
    grower.change(step, times(random, POINTS, POINTS));
    growing.take(grower.since(moment));
  }
  const { moment } = grower;
  grower.moment++;
  grower.change(7, times(random, POINTS, POINTS));
  const now = sceneOf(growing.take(grower.since(moment))[0], 'start', 'run');
  expect([...redrawing.picture(now)]).toEqual([...rasterise(now)]);
  expect(redrawing.whole).toBe(false);
});
