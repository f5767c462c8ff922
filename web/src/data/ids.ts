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

/** Where the bytes of ids of one form lie: the first byte of the first one, and how far it is to the next id and the next byte. */
interface Places {
  at: number;
  toNext: number;
  toByte: number;
}

/** Length of an id of this form, and a line's end. */
function lineLength(form: number[]): number {
  return form.reduce((sum, digits) => sum + digits + 1, 0);
}

/** A line for each of the ids from `from` up to `to`. */
function lines(blob: Uint8Array, { at, toNext, toByte }: Places, form: number[], from: number, to: number): string {
  const bytes = new Uint8Array((to - from) * lineLength(form));
  let end = 0;
  for (let i = from; i < to; i++) {
    let place = at + i * toNext;
    let half = false;
    for (let part = 0; part < form.length; part++) {
      for (let k = 0; k < form[part]; k++) {
        bytes[end++] = DIGITS[half ? blob[place] & 15 : blob[place] >> 4];
        if (half) place += toByte;
        half = !half;
      }
      bytes[end++] = part === form.length - 1 ? 10 : 45;
    }
  }
  return new TextDecoder().decode(bytes);
}

/** The places, among `n` ids, of those that contain the text or are it; from the first one on. */
function* matching(text: string, exact: boolean, n: number, form: number[], written: (from: number, to: number) => string): Generator<number> {
  if (text.includes('\n') || form.length === 0) return;
  const wanted = exact ? `\n${text}\n` : text;
  const length = lineLength(form);
  for (let from = 0; from < n; from += AT_ONCE) {
    const some = `\n${written(from, Math.min(from + AT_ONCE, n))}`;
    for (let found = some.indexOf(wanted); found >= 0; found = some.indexOf(wanted, found + 1)) {
      yield from + Math.floor((found - (exact ? 0 : 1)) / length);
    }
  }
}

/** The lower of the two that are any. */
const firstOf = (a: number, b: number) => (a < 0 ? b : b < 0 ? a : Math.min(a, b));

/** Ids of entities that come one after the other, and keep their places. */
export class GrowingIds implements Ids {
  private form: number[] = [];
  private width = 0;
  private bytes = new Uint8Array(0);
  private count = 0;
  /** Those that are texts. */
  private readonly odd = new Map<number, string>();

  /** Forgets all of them; from now on these are bytes in this form. */
  begin(form: number[]): void {
    this.form = form;
    this.width = form.reduce((sum, digits) => sum + digits, 0) / 2;
    this.bytes = new Uint8Array(0);
    this.odd.clear();
  }

  /** There is room for so many, of which there are `count`. */
  grow(room: number, count: number): void {
    if (room * this.width > this.bytes.length) {
      const bytes = new Uint8Array(room * this.width);
      bytes.set(this.bytes);
      this.bytes = bytes;
    }
    for (let entity = count; entity < this.count; entity++) this.odd.delete(entity);
    this.count = count;
  }

  /** Takes the ids of entities, in which `odd` are the places of texts. */
  take(entities: ArrayLike<number>, n: number, ids: Uint8Array, odd: number[], texts: string[]): void {
    const { width } = this;
    for (let k = 0; k < n; k++) {
      this.bytes.set(ids.subarray(k * width, (k + 1) * width), entities[k] * width);
      if (this.odd.size > 0) this.odd.delete(entities[k]);
    }
    odd.forEach((k, i) => this.odd.set(entities[k], texts[i]));
  }

  at(entity: number): string {
    return this.odd.get(entity) ?? this.written(entity, entity + 1).slice(0, -1);
  }

  exactly(text: string): number {
    return this.first(text, true);
  }

  find(text: string): number {
    const exact = this.first(text, true);
    return exact >= 0 ? exact : this.first(text, false);
  }

  private written(from: number, to: number): string {
    return lines(this.bytes, { at: 0, toNext: this.width, toByte: 1 }, this.form, from, to);
  }

  private first(text: string, exact: boolean): number {
    let first = -1;
    for (const [entity, id] of this.odd) if (exact ? id === text : id.includes(text)) first = firstOf(first, entity);
    for (const entity of matching(text, exact, this.count, this.form, (from, to) => this.written(from, to))) {
      // The bytes of one whose id is a text say nothing.
      if (!this.odd.has(entity)) return firstOf(first, entity);
    }
    return first;
  }
}

export function packedIds(blob: Uint8Array, packed: PackedIds): Ids {
  const { at, n, form } = packed.hex;
  /** Entities whose ids are texts. */
  const odd = column(blob, packed.rows);
  let parsed: string[] | null = null;
  const texts = () => (parsed ??= JSON.parse(text(blob, packed.texts)) as string[]);
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
  const written = (from: number, to: number) => lines(blob, { at, toNext: 1, toByte: n }, form, from, to);
  /** The entity of one of the ids that are bytes. */
  function entityOf(index: number): number {
    let entity = index;
    // Each odd one before it moves it by one.
    for (let moved = before(entity + 1); entity < index + moved; moved = before(entity + 1)) entity = index + moved;
    return entity;
  }
  function search(text: string, exact: boolean): number {
    for (const index of matching(text, exact, n, form, written)) return entityOf(index);
    return -1;
  }
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
