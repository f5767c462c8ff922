/** Where each part of a profile is drawn. */

import type { Profile } from './run';

/** A part of the tree; places and widths are shares of the whole width. */
export interface Box {
  /** Its place in the tree. */
  part: number;
  depth: number;
  from: number;
  width: number;
}

/** The parts in and below one of them (-1: all), each below the one that it is in; the narrowest are left out. */
export function boxes({ tree, samples }: Pick<Profile, 'tree' | 'samples'>, top: number, narrowest: number): Box[] {
  const whole = top < 0 ? samples : tree[top][2];
  const found: (Box | undefined)[] = [];
  /** How far each part is filled by those in it, from its left edge. */
  const filled: number[] = [];
  let outer = 0;
  for (let part = 0; part < tree.length; part++) {
    const [place, , count] = tree[part];
    const width = count / whole;
    if (part === top) {
      found[part] = { part, depth: 0, from: 0, width: 1 };
      filled[part] = 0;
      continue;
    }
    let box: Box | undefined;
    if (place < 0) {
      if (top < 0) box = { part, depth: 0, from: outer, width };
      outer += width;
    } else if (found[place]) {
      const around = found[place];
      box = { part, depth: around.depth + 1, from: around.from + filled[place], width };
      filled[place] += width;
    }
    if (box && width >= narrowest) {
      found[part] = box;
      filled[part] = 0;
    }
  }
  return found.filter((box) => box !== undefined);
}
