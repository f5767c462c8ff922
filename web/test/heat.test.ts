import { describe, expect, it } from 'vitest';
import { BINS, binsOf, heat, logOf } from '../src/chart/heat';
import { timelineOf } from './loads';
import { dice } from './packed';

describe('bins', () => {
  it('ten lie in a decade, from 10 µs', () => {
    expect([logOf(0), logOf(10), logOf(80)]).toEqual([-5, -4, 3]);
  });

  it('those in use are shown, with room, and never too few or beyond the ends', () => {
    expect(binsOf([timelineOf([[[20, 1]], [[45, 1]]])])).toEqual([19, 47]);
    const [low, high] = binsOf([timelineOf([[[30, 1]]])]);
    expect(high - low).toBeGreaterThanOrEqual(10);
    expect(binsOf([timelineOf([Array.from({ length: BINS }, (_, bin) => [bin, 1])])])).toEqual([0, BINS]);
    expect(binsOf([timelineOf([])])).toEqual([20, 30]);
    for (const bin of [0, 79]) {
      const [from, to] = binsOf([timelineOf([[[bin, 1]]])]);
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeLessThanOrEqual(BINS);
      expect(bin >= from && bin < to).toBe(true);
    }
  });
});

describe('heat', () => {
  const draw = (slots: [number, number][][], span: [number, number], width: number) =>
    heat({ timelines: [timelineOf(slots)], span, bins: [20, 22], width });

  it('puts later to the right and slower on top', () => {
    const codes = draw([[[20, 5]], [[21, 5]]], [0, 2], 4);
    expect([...codes]).toEqual([0, 0, 255, 255, 255, 255, 0, 0]);
  });

  it('more answers give a higher code, one answer is never nothing', () => {
    const [few, many] = draw([[[20, 1]], [[20, 1_000_000]]], [0, 2], 2).subarray(2);
    expect(few).toBeGreaterThan(0);
    expect(many).toBe(255);
    expect(few).toBeLessThan(many);
  });

  it('a slot shorter than a pixel shows, and the densest of a pixel counts', () => {
    const slots = Array.from({ length: 100 }, (_, i): [number, number][] => [[20, i === 57 ? 1000 : 1]]);
    const codes = draw(slots, [0, 100], 10);
    expect(codes[10 + 5]).toBe(255);
    expect(codes[10 + 4]).toBeLessThan(255);
  });

  it('what is out of sight is not drawn, and does not break', () => {
    expect(Math.max(...draw([[[20, 1]]], [5, 6], 10))).toBe(0);
    expect(Math.max(...draw([[[50, 1]], [[3, 1]]], [0, 2], 10))).toBe(0);
    expect(draw([], [0, 1], 0)).toHaveLength(0);
  });

  it('any load at any zoom leaves no column of an answered slot empty', () => {
    const random = dice(7);
    for (let round = 0; round < 50; round++) {
      const slots = Array.from({ length: 1 + Math.floor(random() * 40) }, (): [number, number][] => [[20 + Math.floor(random() * 2), 1 + random() * 9]]);
      const from = random() * slots.length * 0.9;
      const span: [number, number] = [from, from + 0.05 + random() * (slots.length - from) * 0.95];
      span[1] = Math.min(span[1], slots.length);
      const width = 1 + Math.floor(random() * 60);
      const codes = draw(slots, span, width);
      for (let x = 0; x < width; x++) expect(codes[x] + codes[width + x]).toBeGreaterThan(0);
    }
  });
});
