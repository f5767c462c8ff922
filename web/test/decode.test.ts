import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { column, inflate, lives, NONE } from '../src/data/decode';
import { dice, packPlain, place } from './packed';

describe('column', () => {
  it('reads every size and missing numbers', () => {
    const values = [0, 1, null, 255, 256, 65_536, 2_147_483_646, null];
    expect([...column(packPlain(values), place(values.length))]).toEqual(values.map((v) => v ?? NONE));
  });

  it('adds up differences to the number above, over gaps', () => {
    const values = [1000, null, 900, 2_147_483_646, 0];
    const packed = packPlain(values, (_, before) => before);
    expect([...column(packed, place(5, 'above'))]).toEqual(values.map((v) => v ?? NONE));
  });

  it('predicts by the nearest number on the left, else by the one above', () => {
    const random = dice(7);
    const some = () => (random() < 0.2 ? null : Math.floor(random() * 2_000_000_000));
    const [a, b, c] = [0, 1, 2].map(() => Array.from({ length: 500 }, some));
    const left = [a, b].map((values) => Uint32Array.from(values, (v) => v ?? NONE));
    const packed = packPlain(c, (row, before) => b[row] ?? a[row] ?? before);
    expect([...column(packed, place(500, 'left'), left)]).toEqual(c.map((v) => v ?? NONE));
  });

  it('says so when the data are cut short', () => {
    expect(() => column(new Uint8Array(7), place(2))).toThrow('cut short');
  });
});

describe('lives', () => {
  it('turns numbers into seconds and finds start and end', async () => {
    const parts = [packPlain([0, 5]), packPlain([2_000_000, null]), packPlain([null, 1]), packPlain([null, 0])];
    const ids = new TextEncoder().encode('["x","</script>"]');
    const bytes = new Uint8Array([...parts.flatMap((part) => [...part]), ...ids]);
    const blob = await inflate(deflateRawSync(bytes).toString('base64'));
    const at = (i: number) => ({ at: 8 * i, n: 2, coding: 'plain' as const });
    const found = lives(blob, {
      name: 'task',
      points: ['a', 'b', 'c'],
      entities: 2,
      origin_s: -1,
      unit_s: 1e-6,
      at: [at(0), at(1), at(2)],
      ids: { at: 32, bytes: ids.length },
      groups: ['cell-1'],
      group: at(3),
      lines: null,
    });
    expect(found.ids).toEqual(['x', '</script>']);
    expect([...found.at[1]]).toEqual([1, NaN]);
    expect([...found.start]).toEqual([-1, -1 + 1e-6]);
    expect([...found.end]).toEqual([1, -1 + 5e-6]);
    expect([...found.group]).toEqual([-1, 0]);
  });
});
