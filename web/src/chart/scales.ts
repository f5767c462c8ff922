/** Numbers as people read them, and the ticks of axes. */

/** `1.27 s`, `12.3 ms`, `840 µs`, `2 m 05 s`; a dash for no value. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  const sign = seconds < 0 ? '−' : '';
  const s = Math.abs(seconds);
  if (s === 0) return '0 s';
  if (s < 0.9995e-3) return `${sign}${significant(s * 1e6)} µs`;
  if (s < 0.9995) return `${sign}${significant(s * 1e3)} ms`;
  if (s < 99.95) return `${sign}${significant(s)} s`;
  const whole = Math.round(s);
  const [h, m] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const rest = String(whole % 60).padStart(2, '0');
  return h > 0 ? `${sign}${h} h ${String(m).padStart(2, '0')} m` : `${sign}${m} m ${rest} s`;
}

function significant(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** `20 ms` for log10(0.02): a round number of seconds, given as its logarithm. */
export function roundDuration(log: number): string {
  const [power, unit] = log >= 0 ? [log, 's'] : log >= -3 ? [log + 3, 'ms'] : [log + 6, 'µs'];
  return `${count(Number((10 ** power).toPrecision(3)))} ${unit}`;
}

/** Logarithms of round numbers within the bounds: powers of ten, and 2 and 5 times these when there is room. */
export function logTicks(from: number, to: number): number[] {
  const steps = to - from < 1.4 ? [0, Math.log10(2), Math.log10(5)] : [0];
  const found: number[] = [];
  for (let power = Math.floor(from); power <= to; power++) {
    found.push(...steps.map((step) => power + step).filter((log) => log >= from && log <= to));
  }
  return found;
}

/** A whole number with separators. */
export function count(value: number): string {
  // Adding 0 makes 0 of -0.
  return Number.isFinite(value) ? (value + 0).toLocaleString('en') : '–';
}

/** `212 MiB`; a dash for no value. */
export function bytes(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let unit = 0;
  while (size >= 1023.5 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 || size >= 99.5 ? size.toFixed(0) : size.toFixed(1)} ${units[unit]}`;
}

/** A number of processor cores: `1.27`; a dash for no value. */
export const cores = (value: number) => (Number.isFinite(value) ? value.toFixed(2) : '–');

/** A share as `12.3 %`; a dash for no value. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const text = (100 * Math.abs(share)).toFixed(1);
  return `${share < 0 && text !== '0.0' ? '−' : ''}${text} %`;
}

/** A share that is never rounded up to 100 % nor down to 0 %. */
export function completePercent(part: number, whole: number): string {
  if (whole === 0) return '–';
  if (part === whole) return '100 %';
  return `${Math.min(Math.floor((10000 * part) / whole) / 100, 99.99).toFixed(2)} %`;
}

/** Part that an axis has above, or below, what it shows. */
const ROOM = 1.04;

/** From the least to the most of an axis that shows these numbers and 0, with a little room. */
export function reach(lines: readonly ArrayLike<number>[]): [number, number] {
  let [least, most] = [0, 0];
  for (const line of lines) {
    for (let i = 0; i < line.length; i++) {
      if (line[i] < least) least = line[i];
      if (line[i] > most) most = line[i];
    }
  }
  if (least === 0 && most === 0) most = 1;
  return [ROOM * least, ROOM * most];
}

const SECOND_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];

/** A step of 1, 2 or 5 times a power of ten below a second, of clock units above. */
function timeStep(atLeast: number): number {
  const step = SECOND_STEPS.find((step) => step >= atLeast);
  return atLeast >= 0.75 && step ? step : niceStep(atLeast);
}

export function niceStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= atLeast * 0.999999) ?? 10 * power;
}

/** Multiples of a step within the bounds, at most about `most`. */
export function ticks(from: number, to: number, most: number, step = niceStep): number[] {
  if (!(to > from) || most < 1) return [];
  const by = step((to - from) / most);
  const found: number[] = [];
  for (let k = Math.ceil(from / by - 1e-9); k * by <= to + by * 1e-9; k++) {
    // Not -0, which would be shown as such.
    found.push(k * by || 0);
  }
  return found;
}

export function timeTicks(from: number, to: number, most: number): number[] {
  return ticks(from, to, most, timeStep);
}

/** A tick's label, with as many decimals as the neighbours need. */
export function timeLabel(seconds: number, step: number): string {
  const s = Math.abs(seconds) < step * 1e-6 ? 0 : seconds;
  const sign = s < 0 ? '−' : '';
  const size = Math.abs(s);
  if (step >= 1 && size >= 120) {
    const whole = Math.round(size);
    const [h, m] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
    const two = (n: number) => String(n).padStart(2, '0');
    return `${sign}${h > 0 ? `${h}:${two(m)}` : m}:${two(whole % 60)}`;
  }
  const decimals = step >= 1 ? 0 : Math.min(Math.ceil(-Math.log10(step) - 1e-9), 6);
  return `${sign}${size.toFixed(decimals)} s`;
}

/** Ticks of a time axis with their labels, and their parts of the way. */
export function timeTickLabels([from, to]: readonly [number, number], most: number): { text: string; part: number }[] {
  // A single tick has no neighbour that tells it.
  const step = timeStep((to - from) / most);
  return timeTicks(from, to, most).map((t) => ({ text: timeLabel(t, step), part: (t - from) / (to - from) }));
}

/** About how wide a letter of a label is, and the least room between two labels, in pixels. */
const [LETTER, BETWEEN] = [6, 4];

/** The labels that have room beside each other on so many pixels, from the left on. */
export function roomy<T extends { text: string; part: number }>(labels: readonly T[], width: number): T[] {
  let free = -Infinity;
  return labels.filter(({ text, part }) => {
    const half = (LETTER * text.length) / 2;
    if (part * width - half < free) return false;
    free = part * width + half + BETWEEN;
    return true;
  });
}
