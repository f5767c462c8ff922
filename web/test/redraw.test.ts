import { expect, it } from 'vitest';
import type { Crowd } from '../src/chart/places';
import { rasterise } from '../src/chart/raster';
import { Redrawing } from '../src/chart/redraw';
import { Growing, still } from '../src/data/growing';
import { order, type Sort } from '../src/data/order';
import type { Align, Lives } from '../src/data/lives';
import { done } from '../src/data/stats';
import { survey } from '../src/data/survey';
import { SurveyKeeper } from '../src/data/survey_keeper';
import { Grower, times } from './grower';
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
