/** Sorting of whole numbers without comparing them: digit by digit, in time that grows with their number alone. */

const DIGIT = 11;
const SIZES = 1 << DIGIT;

/**
 * Puts `items` in the order of their keys, which lie at the same places; equal keys stay in the order that they
 * came in. Keys are 0 to `most`. Both arrays are used up.
 */
export function sortBy(items: Uint32Array, keys: Uint32Array, most: number): { items: Uint32Array; keys: Uint32Array } {
  let [from, to]: Uint32Array[] = [items, new Uint32Array(items.length)];
  let [ranks, next]: Uint32Array[] = [keys, new Uint32Array(keys.length)];
  const counts = new Uint32Array(SIZES);
  for (let shift = 0; shift < 32 && most >>> shift > 0; shift += DIGIT) {
    places(ranks, shift, counts);
    for (let i = 0; i < from.length; i++) {
      const key = ranks[i];
      const place = counts[(key >>> shift) & (SIZES - 1)]++;
      to[place] = from[i];
      next[place] = key;
    }
    [from, to, ranks, next] = [to, from, next, ranks];
  }
  return { items: from, keys: ranks };
}

/** The numbers in order, each 0 to `most`; the array is used up. */
export function sorted(numbers: Uint32Array, most: number): Uint32Array {
  let [from, to]: Uint32Array[] = [numbers, new Uint32Array(numbers.length)];
  const counts = new Uint32Array(SIZES);
  for (let shift = 0; shift < 32 && most >>> shift > 0; shift += DIGIT) {
    places(from, shift, counts);
    for (let i = 0; i < from.length; i++) to[counts[(from[i] >>> shift) & (SIZES - 1)]++] = from[i];
    [from, to] = [to, from];
  }
  return from;
}

/** Where the first number of each digit goes. */
function places(numbers: Uint32Array, shift: number, counts: Uint32Array): void {
  counts.fill(0);
  for (let i = 0; i < numbers.length; i++) counts[(numbers[i] >>> shift) & (SIZES - 1)]++;
  let sum = 0;
  for (let digit = 0; digit < SIZES; digit++) {
    const count = counts[digit];
    counts[digit] = sum;
    sum += count;
  }
}
