/** Ids of entities: those of one form of hexadecimal digits as bytes, all others as texts. */

import { column, text } from './decode';
import type { PackedIds } from './run';

/** Ids that are made into texts at a time, when one is looked for. */
const AT_ONCE = 4096;
const DIGITS = new TextEncoder().encode('0123456789abcdef');

export interface Ids {
  at(entity: number): string;
  /** The entity with this id, or else the first whose id contains the text; -1: none. */
  find(text: string): number;
  /** The entity with this id; -1: none. */
  exactly(text: string): number;
}

/** Ids that are texts. */
export function textIds(all: string[]): Ids {
  const exactly = (text: string) => all.indexOf(text);
  return {
    at: (entity) => all[entity] ?? '',
    exactly,
    find: (text) => (exactly(text) >= 0 ? exactly(text) : all.findIndex((id) => id.includes(text))),
  };
}

export function packedIds(blob: Uint8Array, packed: PackedIds): Ids {
  const { at, n, form } = packed.hex;
  /** Entities whose ids are texts. */
  const odd = column(blob, packed.rows);
  let parsed: string[] | null = null;
  const texts = () => (parsed ??= JSON.parse(text(blob, packed.texts)) as string[]);
  /** Length of an id with digits, and a line's end. */
  const length = form.reduce((sum, digits) => sum + digits + 1, 0);
  const decoder = new TextDecoder();

  /** How many of `odd` are below the entity. */
  function before(entity: number): number {
    let [low, high] = [0, odd.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (odd[middle] < entity) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  /** A line for each of the ids that are bytes. */
  function written(from: number, to: number): string {
    const bytes = new Uint8Array((to - from) * length);
    let end = 0;
    for (let i = from; i < to; i++) {
      let place = at + i;
      let half = false;
      for (let part = 0; part < form.length; part++) {
        for (let k = 0; k < form[part]; k++) {
          bytes[end++] = DIGITS[half ? blob[place] & 15 : blob[place] >> 4];
          if (half) place += n;
          half = !half;
        }
        bytes[end++] = part === form.length - 1 ? 10 : 45;
      }
    }
    return decoder.decode(bytes);
  }
  /** The entity of one of the ids that are bytes. */
  function entityOf(index: number): number {
    let entity = index;
    // Each odd one before it moves it by one.
    for (let moved = before(entity + 1); entity < index + moved; moved = before(entity + 1)) entity = index + moved;
    return entity;
  }
  function search(text: string, exact: boolean): number {
    if (text.includes('\n')) return -1;
    const wanted = exact ? `\n${text}\n` : text;
    for (let from = 0; from < n; from += AT_ONCE) {
      const lines = `\n${written(from, Math.min(from + AT_ONCE, n))}`;
      const found = lines.indexOf(wanted);
      if (found >= 0) return entityOf(from + Math.floor((found - (exact ? 0 : 1)) / length));
    }
    return -1;
  }
  /** The lower of the two that are any. */
  const firstOf = (a: number, b: number) => (a < 0 ? b : b < 0 ? a : Math.min(a, b));
  const entityOfText = (index: number) => (index < 0 ? -1 : odd[index]);
  const exactly = (text: string) => firstOf(entityOfText(texts().indexOf(text)), search(text, true));
  return {
    at(entity) {
      const index = before(entity);
      if (odd[index] === entity) return texts()[index];
      return written(entity - index, entity - index + 1).slice(0, -1);
    },
    exactly,
    find(text) {
      const exact = exactly(text);
      if (exact >= 0) return exact;
      return firstOf(entityOfText(texts().findIndex((id) => id.includes(text))), search(text, false));
    },
  };
}
