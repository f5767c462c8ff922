/** Draws pictures of timelines that grow with as much as can be kept of those before. */

import { done, type Pieces } from '../data/stats';
import { byLength, type Survey } from '../data/survey';
import { crowd } from './crowd';
import { Intervals } from './intervals';
import type { Crowd } from './places';

/** Those who have an interval that always shows now and did not, or the other way round. */
function changedOutliers(before: Survey, now: Survey): Int32Array {
  if (before === now) return new Int32Array(0);
  const entities: number[] = [];
  // What did not change is the same object in both, of a survey that is mended.
  for (let [i, j] = [0, 0]; i < before.far.length || j < now.far.length; ) {
    const [old, own] = [before.far[i], now.far[j]];
    if (old !== own) entities.push((own && (!old || byLength(own, old) < 0) ? own : old).entity);
    if (old && (old === own || !own || byLength(own, old) >= 0)) i++;
    if (own && (old === own || !old || byLength(own, old) < 0)) j++;
  }
  return Int32Array.from(entities);
}

/** The pictures of one chart, one after the other. */
export class Redrawing {
  private last: Crowd | null = null;
  private intervals: Intervals | null = null;

  /** The picture of a scene, at once: with everybody counted where that is known, else as `crowd` has it quickly. */
  picture(scene: Crowd): Uint8Array {
    const changed = this.changed(scene);
    if (!changed || !this.intervals?.fits(scene)) this.intervals = null;
    const { last, intervals } = this;
    this.last = scene;
    if (last && changed && intervals) {
      intervals.change(changed, scene);
      intervals.change(changedOutliers(last.survey, scene.survey), scene);
    }
    return intervals?.ready ? intervals.picture(scene) : done(crowd(scene, true));
  }

  /** Does everybody count in the next picture at the same place? */
  get whole(): boolean {
    return this.intervals?.ready === true;
  }

  /** Work after which pictures like that of this scene take less; null: it was begun. */
  prepare(scene: Crowd, piece?: number): Pieces<void> | null {
    if (this.intervals || this.last !== scene) return null;
    this.intervals = new Intervals(scene);
    return this.intervals.build(piece);
  }

  /** Who has changed since the last picture; null: that is not known. */
  private changed({ lives }: Crowd): Int32Array | null {
    const before = this.last?.lives;
    if (before === lives) return new Int32Array(0);
    return before ? (lives.cache?.changedSince(before, lives) ?? null) : null;
  }
}
