import { describe, expect, test } from 'vitest';
import { boxes } from '../src/data/flame';

/** web 8 (main 8 (work 5, read 2)), db 2 (main 2). */
const profile = {
  samples: 10,
  tree: [
    [-1, 0, 8],
    [-1, 1, 2],
    [1, 2, 2],
    [0, 2, 8],
    [3, 3, 5],
    [3, 4, 2],
  ] as [number, number, number][],
};
const rounded = (all: ReturnType<typeof boxes>) =>
  all.map(({ part, depth, from, width }) => [part, depth, +from.toFixed(6), +width.toFixed(6)]);

describe('parts of a profile', () => {
  test('lie below what they are in, side by side', () => {
    expect(rounded(boxes(profile, -1, 0))).toEqual([
      [0, 0, 0, 0.8],
      [1, 0, 0.8, 0.2],
      [2, 1, 0.8, 0.2],
      [3, 1, 0, 0.8],
      [4, 2, 0, 0.5],
      [5, 2, 0.5, 0.2],
    ]);
  });

  test('fill the width when one is shown alone', () => {
    expect(rounded(boxes(profile, 3, 0))).toEqual([
      [3, 0, 0, 1],
      [4, 1, 0, 0.625],
      [5, 1, 0.625, 0.25],
    ]);
    expect(rounded(boxes(profile, 1, 0))).toEqual([
      [1, 0, 0, 1],
      [2, 1, 0, 1],
    ]);
  });

  test('are left out with what is in them when they are too narrow', () => {
    expect(rounded(boxes(profile, -1, 0.3)).map(([part]) => part)).toEqual([0, 3, 4]);
  });
});
