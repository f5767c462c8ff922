/**
 * Where the intervals of many entities that grow are in their picture, kept from one picture to the next: an update
 * looks at the times of those only who have changed, and still counts everybody. Another order of rows costs no look at all.
 */

import type { Pieces } from '../data/stats';
import { Counts } from './counts';
import { axisOf, drawOutliers, isSameAxis, isSameRows, linesOf, type Crowd } from './places';
import { GAP, Walk, type IntervalSink } from './raster';

/** More intervals than these are not kept: they would take as much room as the times, and as long to count. */
const MOST = 4_000_000;
/** So many changes at most wait until they are looked at, once everybody was. */
const WAITING = 100_000;
/** So many entities are looked at in one piece of work. */
const PIECE = 16_384;

/** The intervals of one kind: whose, and the pixels from and up to but not including, in the lower and the upper half. */
class Kind {
  n = 0;
  who: Uint32Array = new Uint32Array(64);
  pixels: Uint32Array = new Uint32Array(64);

  push(entity: number, pixels: number): void {
    if (this.n === this.who.length) [this.who, this.pixels] = [doubled(this.who), doubled(this.pixels)];
    this.who[this.n] = entity;
    this.pixels[this.n++] = pixels;
  }
}

function doubled(numbers: Uint32Array): Uint32Array {
  const larger = new Uint32Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}

export class Intervals {
  /** Is there a picture to be had? */
  ready = false;

  private kinds: Kind[];
  /** Who has changed and was not looked at since. */
  private changed: Int32Array[] = [];
  private waiting = 0;
  private tooMany = false;
  private lines: { scene: Crowd; of: Int16Array } | null = null;

  constructor(private readonly first: Crowd) {
    this.kinds = first.lives.points.map(() => new Kind());
  }

  /** Looks at everybody, at so many in one piece. Who changes meanwhile is looked at again. */
  *build(piece = PIECE): Pieces<void> {
    const { first, kinds } = this;
    const sink = new IntervalCollector(kinds);
    const walk = new Walk(first);
    for (let from = 0; from < first.lives.count; from += piece, yield) {
      for (let i = from, to = Math.min(from + piece, first.lives.count); i < to; i++) walk.of(i, sink.of(i));
      if (kinds.reduce((sum, { n }) => sum + n, 0) > MOST) {
        this.kinds = [];
        this.changed = [];
        this.tooMany = true;
        return;
      }
    }
    this.ready = true;
  }

  /** Is every interval at the place in this picture at which it was in the first? */
  fits(scene: Crowd): boolean {
    return isSameAxis(this.first, scene) && (scene.rows[1] - scene.rows[0]) / scene.height < Counts.MOST - 1;
  }

  /** These entities have changed since the last scene, or what of them always shows has. */
  change(rows: Int32Array, scene: Crowd): void {
    if (rows.length === 0 || this.tooMany) return;
    this.changed.push(rows);
    this.waiting += rows.length;
    if (this.waiting > WAITING && this.ready) this.look(scene);
  }

  /** The picture, as `rasterise` has it. */
  picture(scene: Crowd): Uint8Array {
    this.look(scene);
    const { width, height } = scene;
    const lines = this.linesOf(scene);
    const codes = new Uint8Array(width * height);
    const counts = new Counts(width, height);
    this.kinds.forEach((kind, n) => {
      count(counts, kind, lines);
      counts.resolve(codes, n === 0 ? GAP : n);
    });
    drawOutliers(codes, lines, axisOf(scene), scene);
    return codes;
  }

  /** Looks at those who have changed. */
  private look(scene: Crowd): void {
    if (this.changed.length === 0) return;
    const { lives } = scene;
    const marks = new Uint8Array(lives.count);
    const fresh = this.kinds.map(() => new Kind());
    const [walk, sink] = [new Walk(scene), new IntervalCollector(fresh)];
    for (const rows of this.changed) {
      for (const i of rows) {
        if (i >= lives.count || marks[i] === 1) continue;
        marks[i] = 1;
        walk.of(i, sink.of(i));
      }
    }
    this.kinds.forEach((kind, n) => renew(kind, fresh[n], marks));
    this.changed = [];
    this.waiting = 0;
  }

  private linesOf(scene: Crowd): Int16Array {
    const { lines } = this;
    if (lines?.scene.order === scene.order && isSameRows(lines.scene, scene)) return lines.of;
    // Who has no place has no interval either.
    return (this.lines = { scene, of: linesOf(scene, null) }).of;
  }
}

/** Takes the intervals of one entity after the other. */
class IntervalCollector implements IntervalSink {
  private entity = 0;

  constructor(private readonly kinds: Kind[]) {}

  of(entity: number): this {
    this.entity = entity;
    return this;
  }

  add(code: number, a: number, b: number, far: number): void {
    // Far ones are in the survey.
    if (a < b && far === 0) this.kinds[code < this.kinds.length ? code : 0].push(this.entity, a | (b << 16));
  }
}

/** Puts the intervals that are new in place of those of marked entities, and of those that are no more. */
function renew(kind: Kind, fresh: Kind, marks: Uint8Array): void {
  const { who, pixels } = kind;
  let n = 0;
  for (let k = 0; k < kind.n; k++) {
    const i = who[k];
    if (i >= marks.length || marks[i] === 1) continue;
    who[n] = i;
    pixels[n++] = pixels[k];
  }
  kind.n = n;
  for (let k = 0; k < fresh.n; k++) kind.push(fresh.who[k], fresh.pixels[k]);
}

function count({ change, left, right, width }: Counts, { n, who, pixels }: Kind, lines: Int16Array): void {
  for (let k = 0; k < n; k++) {
    const y = lines[who[k]];
    if (y < 0) continue;
    const [a, b] = [pixels[k] & 0xffff, pixels[k] >>> 16];
    const row = y * (width + 1);
    change[row + a]++;
    change[row + b]--;
    if (a < left[y]) left[y] = a;
    if (b > right[y]) right[y] = b;
  }
}
