import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { bytes, column, inflate, NONE, sampleAt } from '../src/data/decode';
import { packedIds } from '../src/data/ids';
import { endOf, startOf, timeOf, unpack } from '../src/data/lives';
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
    const left = [a, b].map((values) => Int32Array.from(values, (v) => v ?? NONE));
    const packed = packPlain(c, (row, before) => b[row] ?? a[row] ?? before);
    expect([...column(packed, place(500, 'left'), left)]).toEqual(c.map((v) => v ?? NONE));
  });

  it('reads as many planes as there are', () => {
    const packed = packPlain([0, 300, null]);
    for (const planes of [2, 3, 4]) expect([...column(packed, { ...place(3), planes })]).toEqual([0, 300, NONE]);
    expect([...column(new Uint8Array(), { ...place(2), planes: 0 })]).toEqual([NONE, NONE]);
  });

  it('reads differences of which the highest digits were kept', () => {
    // With 2 digits: 7 is whole; 8 and 10 have one bit left out, 28 has two; twice that and the sign.
    const codes = [7, (1 << 2) + 4, (1 << 2) + 5, (2 << 2) + 7];
    const stored = codes.flatMap((code) => [2 * code + 1, 2 * code + 2]);
    const anchors = Int32Array.from(stored, () => 1000);
    const coarse = { ...place(stored.length, 'left'), planes: 1, digits: 2 };
    expect([...column(Uint8Array.from(stored), coarse, [], anchors)]).toEqual([1007, 993, 1008, 992, 1010, 990, 1028, 972]);
    expect([...column(Uint8Array.from(stored), coarse, [Int32Array.from(stored, () => 3)], anchors)].slice(0, 2)).toEqual([10, 0]);
  });

  it('says so when the data are cut short', () => {
    expect(() => column(new Uint8Array(7), place(2))).toThrow('cut short');
  });
});

describe('lives', () => {
  it('turns numbers into seconds and finds start and end', async () => {
    const parts = [packPlain([0, 5]), packPlain([2_000_000, null]), packPlain([null, 1]), packPlain([null, 0]), packPlain([0, 1])];
    const texts = new TextEncoder().encode('["x","</script>"]');
    const whole = new Uint8Array([...parts.flatMap((part) => [...part]), ...texts]);
    const blob = await inflate(new Uint8Array(deflateRawSync(whole)));
    const at = (i: number) => place(2, 'plain', 8 * i);
    const found = unpack(blob, {
      name: 'task',
      points: ['a', 'b', 'c'],
      entities: 2,
      origin_s: -1,
      unit_s: 1e-6,
      digits: null,
      first: null,
      at: [at(0), at(1), at(2)],
      ids: { hex: { at: 0, n: 0, form: [] }, rows: at(4), texts: { at: 40, bytes: texts.length } },
      groups: ['cell-1'],
      group: at(3),
      lines: null,
    });
    expect([0, 1, 2].map((entity) => found.ids.at(entity))).toEqual(['x', '</script>', '']);
    expect([timeOf(found, 0, 1), timeOf(found, 1, 1)]).toEqual([1, NaN]);
    expect([startOf(found, 0), startOf(found, 1)]).toEqual([-1, -1 + 1e-6]);
    expect([endOf(found, 0), endOf(found, 1)]).toEqual([1, -1 + 5e-6]);
    expect([...found.group]).toEqual([-1, 0]);
  });
});

describe('ids', () => {
  const random = dice(41);
  const digits = (n: number) => Array.from({ length: n }, () => Math.floor(random() * 16).toString(16)).join('');
  const all = Array.from({ length: 9000 }, (_, i) => (i % 1000 === 7 ? `odd-${i}` : [8, 4, 4].map(digits).join('-')));
  const odd = all.flatMap((id, i) => (id.startsWith('odd') ? [i] : []));
  const hex = all.filter((id) => !id.startsWith('odd')).map((id) => Buffer.from(id.replaceAll('-', ''), 'hex'));
  const planes = Uint8Array.from({ length: 8 * hex.length }, (_, k) => hex[k % hex.length][Math.floor(k / hex.length)]);
  const texts = new TextEncoder().encode(JSON.stringify(odd.map((i) => all[i])));
  const blob = new Uint8Array([...packPlain(odd), ...planes, ...texts]);
  const at = 4 * odd.length;
  const ids = packedIds(blob, {
    hex: { at, n: hex.length, form: [8, 4, 4] },
    rows: place(odd.length),
    texts: { at: at + planes.length, bytes: texts.length },
  });

  it('are told one by one', () => {
    expect(all.map((_, i) => ids.at(i))).toEqual(all);
  });

  it('are found whole, in part, and not at all', () => {
    for (let i = 0; i < all.length; i += 333) expect([ids.exactly(all[i]), ids.find(all[i])]).toEqual([i, i]);
    for (const i of odd) expect(ids.exactly(all[i])).toBe(i);
    for (const part of [all[8123].slice(3, 14), all[4321].slice(5), 'odd-5', '-', all[0].slice(0, 9)]) {
      expect(ids.find(part)).toBe(all.findIndex((id) => id.includes(part)));
      expect(ids.exactly(part)).toBe(-1);
    }
    // The end of one and the begin of the next are no id.
    expect(ids.find(`${all[0].slice(-4)}\n${all[1].slice(0, 4)}`)).toBe(-1);
    expect(ids.find('nobody')).toBe(-1);
  });
});

it('a line of samples says nothing before the first and after the last', () => {
  const line = { t: Float64Array.of(1, 1.1, 1.2, 1.3), v: Float64Array.of(5, 6, 7, 8) };
  expect([0.9, 1, 1.15, 1.3, 1.5, 2].map((at) => sampleAt(line, at))).toEqual([NaN, 5, 6, 8, 8, NaN]);
  const one = { t: Float64Array.of(3), v: Float64Array.of(9) };
  expect([2, 3, 3.1].map((at) => sampleAt(one, at))).toEqual([NaN, 9, NaN]);
  expect(sampleAt({ t: new Float64Array(0), v: new Float64Array(0) }, 1)).toBeNaN();
});

it('a page has its bytes as characters of seven bits', () => {
  expect([...bytes('\x01\x01')]).toEqual([129]);
  // What a page cannot hold: `<`, a carriage return, NUL.
  expect([...bytes('\xa3\x1a\xa1')]).toEqual([60, 13]);
  expect(bytes('').length).toBe(0);
});
