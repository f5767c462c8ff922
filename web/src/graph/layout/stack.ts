/** Items one below the other, each as near to its wish as the others let it be. Pure. */

/**
 * The places with the least sum of weighted squared distances from the wishes, such that
 * item `i + 1` is at least `apart[i]` behind item `i`: pooling of neighbours that are in
 * each other's way, which is exact.
 */
export function stack(wishes: readonly number[], weights: readonly number[], apart: readonly number[]): number[] {
  // With the distances taken out, places must only not fall.
  let offset = 0;
  const offsets = wishes.map((_, i) => (i === 0 ? 0 : (offset += apart[i - 1])));
  const pools: { sum: number; weight: number; count: number }[] = [];
  wishes.forEach((wish, i) => {
    let pool = { sum: weights[i] * (wish - offsets[i]), weight: weights[i], count: 1 };
    for (let last = pools.at(-1); last && last.sum / last.weight >= pool.sum / pool.weight; last = pools.at(-1)) {
      pools.pop();
      pool = { sum: last.sum + pool.sum, weight: last.weight + pool.weight, count: last.count + pool.count };
    }
    pools.push(pool);
  });
  const places = pools.flatMap(({ sum, weight, count }) => new Array<number>(count).fill(sum / weight));
  return places.map((place, i) => place + offsets[i]);
}
