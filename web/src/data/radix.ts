/** Sorting of whole numbers without comparing them: digit by digit, in time that grows with their number alone. */

/** Most bits of a digit: the places of so many different ones stay near the processor. */
const MOST_BITS = 12;

/**
 * Puts `items` in the order of their keys, which lie at the same places; equal keys stay in the order that they
 * came in. Keys are 0 to `most`. Both arrays are used up. Without `withKeys` the returned keys are in no order.
 */
export function sortBy(items: Uint32Array, keys: Uint32Array, most: number, withKeys = true): { items: Uint32Array; keys: Uint32Array } {
  let [from, to]: Uint32Array[] = [items, new Uint32Array(items.length)];
  let [ranks, next]: Uint32Array[] = [keys, new Uint32Array(keys.length)];
  const { digits, bits } = digitsOf(most);
  const mask = (1 << bits) - 1;
  const counts = new Uint32Array(1 << bits);
  for (let digit = 0, shift = 0; digit < digits; digit++, shift += bits) {
    places(ranks, shift, counts);
    if (digit === digits - 1 && !withKeys) {
      for (let i = 0; i < from.length; i++) to[counts[(ranks[i] >>> shift) & mask]++] = from[i];
      return { items: to, keys: ranks };
    }
    for (let i = 0; i < from.length; i++) {
      const key = ranks[i];
      const place = counts[(key >>> shift) & mask]++;
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
  const { digits, bits } = digitsOf(most);
  const counts = new Uint32Array(1 << bits);
  for (let digit = 0, shift = 0; digit < digits; digit++, shift += bits) {
    places(from, shift, counts);
    for (let i = 0; i < from.length; i++) to[counts[(from[i] >>> shift) & (counts.length - 1)]++] = from[i];
    [from, to] = [to, from];
  }
  return from;
}

/** As few digits as numbers up to `most` have, and their bits. */
function digitsOf(most: number): { digits: number; bits: number } {
  const all = 32 - Math.clz32(most);
  const digits = Math.ceil(all / MOST_BITS);
  return { digits, bits: digits === 0 ? 1 : Math.ceil(all / digits) };
}

/** Where the first number of each digit goes. */
function places(numbers: Uint32Array, shift: number, counts: Uint32Array): void {
  const mask = counts.length - 1;
  counts.fill(0);
  for (let i = 0; i < numbers.length; i++) counts[(numbers[i] >>> shift) & mask]++;
  let sum = 0;
  for (let digit = 0; digit <= mask; digit++) {
    const count = counts[digit];
    counts[digit] = sum;
    sum += count;
  }
}
