/** From the packed blob to typed arrays; `crates/lab/report/src/blob.rs` packs it. */

import { placeAfter } from '../chart/lines';
import type { Column, Line, LinesOf, Scaled, Text, Timelines } from './run';

/** A missing number in a decoded column. */
export const NONE = 0xffffffff;

/** The inflated blob. */
export async function inflate(base64: string): Promise<Uint8Array> {
  const stream = new Blob([bytes(base64.trim())]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type FromBase64 = { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  // Many times faster, but not yet in every browser.
  const { fromBase64 } = Uint8Array as FromBase64;
  if (fromBase64) return fromBase64(base64);
  const text = atob(base64);
  const values = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) values[i] = text.charCodeAt(i);
  return values;
}

/**
 * The numbers of a column, `NONE` where there is none.
 *
 * `left` are the earlier columns of its table, decoded.
 */
export function column(blob: Uint8Array, place: Column, left: Uint32Array[] = []): Uint32Array {
  const { at, n, coding } = place;
  if (at + 4 * n > blob.length) throw new Error('the data of this report are cut short');
  const values = new Uint32Array(n);
  let before = 0;
  for (let row = 0; row < n; row++) {
    const i = at + row;
    const stored =
      (blob[i] | (blob[i + n] << 8) | (blob[i + 2 * n] << 16) | (blob[i + 3 * n] << 24)) >>> 0;
    if (stored === 0) {
      values[row] = NONE;
      continue;
    }
    const folded = stored - 1;
    const difference = folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
    let predicted = coding === 'plain' ? 0 : before;
    if (coding === 'left') {
      for (let c = left.length - 1; c >= 0; c--) {
        if (left[c][row] !== NONE) {
          predicted = left[c][row];
          break;
        }
      }
    }
    before = predicted + difference;
    values[row] = before;
  }
  return values;
}

/** The quantities of a column, NaN where there is none. */
export function scaled(blob: Uint8Array, place: Scaled): Float64Array {
  const numbers = column(blob, place);
  // A loop, here and below: typed arrays' `from` is ten times slower, and this runs before the first paint.
  const values = new Float64Array(numbers.length);
  for (let i = 0; i < numbers.length; i++) {
    values[i] = numbers[i] === NONE ? NaN : place.origin + numbers[i] * place.unit;
  }
  return values;
}

/** Points of a line, in order of time. */
export interface Points {
  t: Float64Array;
  v: Float64Array;
}

export function points(blob: Uint8Array, line: Line): Points {
  return { t: scaled(blob, line.t), v: scaled(blob, line.v) };
}

/** The last value at or before `at`; NaN before the first. */
export function valueAt({ t, v }: Points, at: number): number {
  const after = placeAfter(t, at);
  return after > 0 ? v[after - 1] : NaN;
}

export function text(blob: Uint8Array, place: Text): string {
  return new TextDecoder().decode(blob.subarray(place.at, place.at + place.bytes));
}

/** The timelines of one kind of entity. */
export interface Lives {
  name: string;
  points: string[];
  /** How many entities. */
  count: number;
  /** For each point the time at which each entity passed it; NaN: not seen. */
  at: Float64Array[];
  ids: string[];
  groups: string[];
  /** For each entity the index of its group; -1: none. */
  group: Int32Array;
  /** First and last time seen of each entity; NaN: none. */
  start: Float64Array;
  end: Float64Array;
  /** The log lines of some of them; unpacked when they are asked for. */
  lines: () => LinesOf | null;
}

export function lives(blob: Uint8Array, packed: Timelines): Lives {
  const numbers: Uint32Array[] = [];
  for (const place of packed.at) numbers.push(column(blob, place, numbers));
  const { origin_s, unit_s } = packed;
  const at = numbers.map((values) => {
    const times = new Float64Array(values.length);
    for (let i = 0; i < values.length; i++) times[i] = values[i] === NONE ? NaN : origin_s + values[i] * unit_s;
    return times;
  });
  const start = new Float64Array(packed.entities).fill(NaN);
  const end = new Float64Array(packed.entities).fill(NaN);
  for (const times of at) {
    for (let i = 0; i < times.length; i++) {
      const t = times[i];
      if (Number.isNaN(t)) continue;
      if (!(start[i] <= t)) start[i] = t;
      if (!(end[i] >= t)) end[i] = t;
    }
  }
  return {
    name: packed.name,
    points: packed.points,
    count: packed.entities,
    at,
    ids: JSON.parse(text(blob, packed.ids)),
    groups: packed.groups,
    // NONE is -1 in this type.
    group: new Int32Array(column(blob, packed.group).buffer),
    start,
    end,
    lines: () => (packed.lines ? JSON.parse(text(blob, packed.lines)) : null),
  };
}
