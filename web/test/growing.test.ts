import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Growing, still } from '../src/data/growing';
import { ends, endsOfAll, unpack, type Lives } from '../src/data/lives';
import { order, type Sort } from '../src/data/order';
import type { Grown, Timelines } from '../src/data/run';
import { survey } from '../src/data/survey';
import { SurveyKeeper } from '../src/data/survey_keeper';
import { done } from '../src/data/stats';
import { Grower, times } from './grower';
import { dice } from './packed';

const POINTS = 4;
const SORTS: Sort[] = ['start', 'end', 'total', 'group', { phase: 1 }];

/** Every entity as a text, whatever place it is at. */
function entities(lives: Lives): string[] {
  const one = (i: number) => [lives.ids.at(i), lives.groups[lives.group[i]] ?? null, ...lives.at.map((numbers) => numbers[i]), lives.first[i], lives.last[i]];
  return Array.from({ length: lives.count }, (_, i) => JSON.stringify(one(i))).sort();
}

/** The same of what the server has. */
function known({ entities }: Grower): string[] {
  const rows = entities.map(({ id, group, at }) => {
    const seen = at.filter((n) => n >= 0);
    return JSON.stringify([id, group, ...at, seen.length > 0 ? Math.min(...seen) : -1, seen.length > 0 ? Math.max(...seen) : -1]);
  });
  return rows.sort();
}

/** Some time passes: entities come, go on, and a few are no more. */
function pass(grower: Grower, random: () => number): void {
  grower.moment++;
  const upTo = (n: number) => Math.floor(random() * n);
  for (let n = upTo(30); n > 0; n--) {
    const id = random() < 0.9 ? upTo(2 ** 32).toString(16).padStart(8, '0') : `odd-${upTo(1e6)}`;
    grower.add(id, random() < 0.8 ? `cell-${upTo(12)}` : null, times(random, POINTS, 1 + upTo(POINTS)));
  }
  for (let n = upTo(10); n > 0 && grower.entities.length > 0; n--) {
    grower.change(upTo(grower.entities.length), times(random, POINTS, 1 + upTo(POINTS)));
  }
  if (random() < 0.2 && grower.entities.length > 1) grower.remove(upTo(grower.entities.length));
  // Another origin: every number is another one.
  if (random() < 0.03) grower.whole = grower.moment;
}

it('a page that takes what changed has what the server has, whenever it asked, and what it keeps is as if made anew', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = dice(seed);
    const grower = new Grower(POINTS);
    let growing = new Growing();
    let moment = 0;
    for (let step = 0; step < 40; step++) {
      pass(grower, random);
      // It was away, or asks once more with what it had before.
      if (random() < 0.3) continue;
      if (random() < 0.05) [growing, moment] = [new Growing(), 0];
      const from = random() < 0.1 ? Math.max(moment - 1, 0) : moment;
      const [lives] = growing.take(grower.since(from));
      moment = grower.moment;
      expect(entities(lives), `seed ${seed}, step ${step}`).toEqual(known(grower));
      const anew = still(lives);
      expect(lives.ends, `seed ${seed}, step ${step}`).toEqual(endsOfAll({ ...anew, ends: undefined }));
      for (const sort of SORTS) {
        if (random() < 0.4) continue;
        expect([...order(lives, sort)], `seed ${seed}, step ${step}, ${JSON.stringify(sort)}`).toEqual([...order(anew, sort)]);
      }
    }
  }
});

it('a survey that is mended is as one that is made anew', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = dice(seed);
    const grower = new Grower(POINTS);
    grower.moment = 1;
    for (let n = 0; n < 1500; n++) grower.add(n.toString(16).padStart(8, '0'), null, times(random, POINTS, POINTS));
    const growing = new Growing();
    let lives = growing.take(grower.since(0))[0];
    let keeper = new SurveyKeeper(lives);
    for (let step = 0; step < 30; step++) {
      const moment = grower.moment;
      pass(grower, random);
      const sent = grower.since(moment);
      const { whole, rows: n, entities } = sent.grown[0];
      const rows = new Int32Array(sent.bytes, 0, n).slice();
      if (!whole) keeper.leave(lives, rows, entities);
      lives = growing.take(sent)[0];
      if (whole) keeper = new SurveyKeeper(lives);
      else keeper.enter(lives, rows);
      expect(keeper.survey(lives), `seed ${seed}, step ${step}`).toEqual(done(survey(still(lives))));
    }
  }
});

it('an id is found at the place that it has now', () => {
  const grower = new Grower(2);
  grower.moment = 1;
  for (const id of ['0a0b0c0d', 'web/1', '11112222', 'web/2', '33334444']) grower.add(id, null, [1, 2]);
  const growing = new Growing();
  let [{ ids }] = growing.take(grower.since(0));
  expect(['0a0b0c0d', 'web/2', '33334444', 'nobody', '00000000'].map((id) => ids.exactly(id))).toEqual([0, 3, 4, -1, -1]);
  expect([ids.find('b/'), ids.find('22'), ids.find('0'), ids.at(1)]).toEqual([1, 2, 0, 'web/1']);
  grower.moment = 2;
  grower.remove(1);
  [{ ids }] = growing.take(grower.since(1));
  expect(['33334444', 'web/1', 'web/2'].map((id) => ids.exactly(id))).toEqual([1, -1, 3]);
  expect([0, 1, 2, 3].map((i) => ids.at(i))).toEqual(['0a0b0c0d', '33334444', '11112222', 'web/2']);
});

it('what has a gap before it is refused', () => {
  const grower = new Grower(1);
  grower.moment = 1;
  grower.add('00000001', 'a', [1]);
  grower.moment = 2;
  grower.add('00000002', 'b', [1]);
  expect(() => new Growing().take(grower.since(1))).toThrow('a gap');
});

/** What the server's own code sends; `cargo test -p lab-report growing` makes it. */
interface Recorded {
  updates: { grown: Grown[]; bytes: string }[];
  report: { lifecycle: Timelines; blob: string };
}

it('what the server sent, taken one after the other, is what its report holds', () => {
  const { updates, report } = JSON.parse(readFileSync(new URL('growing.json', import.meta.url), 'utf8')) as Recorded;
  const bytes = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'));
  const growing = new Growing();
  let lives!: Lives;
  for (const { grown, bytes: sent } of updates) [lives] = growing.take({ grown, bytes: bytes(sent).buffer, at: 0 });
  expect(updates.filter(({ grown }) => !grown[0].whole).length).toBeGreaterThan(5);
  const end = unpack(bytes(report.blob), report.lifecycle);
  expect([lives.points, lives.origin, lives.unit, lives.count]).toEqual([end.points, end.origin, end.unit, end.count]);
  expect(entities(lives)).toEqual(entities(end));
});

it('first and last numbers are those of all points', () => {
  const grower = new Grower(3);
  grower.moment = 1;
  grower.add('00000001', null, [5, -1, 3]);
  grower.add('00000002', null, [-1, -1, -1]);
  const [lives] = new Growing().take(grower.since(0));
  const [first, last] = [new Int32Array(2), new Int32Array(2)];
  ends(lives.at, first, last);
  expect([lives.first, lives.last]).toEqual([first, last]);
});
