/** From the packed blob to typed arrays; `crates/lab/report/src/blob.rs` packs it. */

import { placeAfter } from '../chart/lines';
import type { Column, Line, Scaled, Text } from './run';

/** A missing number in a decoded column. */
export const NONE = -1;

/** The highest number of a column. */
const MOST = 2 ** 31 - 2;

/** What stands for the bytes of a page that its text cannot hold: NUL, a carriage return, `<`. */
const INSTEAD = ['\xa1', '\xa2', '\xa3'];
const CANNOT = [0, 13, 60];

/** The blob of a page's text. */
export function unpacked(written: string): Promise<Uint8Array> {
  return inflate(bytes(written));
}

/** The inflated blob. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Bytes that were written as characters of seven bits each, the lowest first. */
export function bytes(written: string): Uint8Array<ArrayBuffer> {
  const values = new Uint8Array(Math.floor((written.length * 7) / 8));
  const base = INSTEAD[0].charCodeAt(0);
  let [bits, held, end] = [0, 0, 0];
  for (let i = 0; i < written.length; i++) {
    const code = written.charCodeAt(i);
    bits |= (code < 128 ? code : CANNOT[code - base]) << held;
    held += 7;
    if (held >= 8) {
      values[end++] = bits;
      bits >>= 8;
      held -= 8;
    }
  }
  return values;
}

/**
 * The numbers of a column, `NONE` where there is none.
 *
 * `left` are the earlier columns of its table, decoded; a row without a number in them is
 * predicted by `anchors`, or else by the row above.
 */
export function column(blob: Uint8Array, place: Column, left: Int32Array[] = [], anchors: Int32Array | null = null): Int32Array {
  const { at, n, planes, coding, digits } = place;
  if (at + planes * n > blob.length) throw new Error('the data of this report are cut short');
  const values = new Int32Array(n);
  const [least, top] = digits === null ? [0, Infinity] : [1 << digits, 2 << digits];
  const neighbour = left[left.length - 1];
  let before = 0;
  for (let row = 0; row < n; row++) {
    const i = at + row;
    // A plane that is not there is all zero.
    let stored = planes > 0 ? blob[i] : 0;
    if (planes > 1) stored |= blob[i + n] << 8;
    if (planes > 2) stored |= blob[i + 2 * n] << 16;
    if (planes > 3) stored = (stored | (blob[i + 3 * n] << 24)) >>> 0;
    if (stored === 0) {
      values[row] = NONE;
      continue;
    }
    const folded = stored - 1;
    let difference = folded >>> 1;
    // The highest digits, and how many lower ones were left out.
    if (difference >= top) difference = ((difference & (least - 1)) | least) << ((difference >> digits!) - 1);
    if (folded & 1) difference = digits === null ? -difference - 1 : -difference;
    let predicted = coding === 'plain' ? 0 : before;
    if (coding === 'left') {
      if (neighbour && neighbour[row] !== NONE) predicted = neighbour[row];
      else {
        if (anchors) predicted = anchors[row];
        for (let c = left.length - 2; c >= 0; c--) {
          if (left[c][row] !== NONE) {
            predicted = left[c][row];
            break;
          }
        }
      }
    }
    before = predicted + difference;
    // What is rounded may come out beyond what there is.
    if (digits !== null) before = Math.min(Math.max(before, 0), MOST);
    values[row] = before;
  }
  return values;
}

/** The quantities of a column, NaN where there is none. */
export function scaled(blob: Uint8Array, place: Scaled): Float64Array {
  const numbers = column(blob, place);
  // A loop: typed arrays' `from` is ten times slower, and this runs before the first paint.
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

/** The last sample at or before `at`; NaN before the first, and where none was taken any more. */
export function sampleAt(line: Points, at: number): number {
  const { t } = line;
  const last = t.length - 1;
  // Their distances differ, and of many some are left out.
  const apart = last > 0 ? (4 * (t[last] - t[0])) / last : 0;
  return at > t[last] + apart ? NaN : valueAt(line, at);
}

export function text(blob: Uint8Array, place: Text): string {
  return new TextDecoder().decode(blob.subarray(place.at, place.at + place.bytes));
}
