/**
 * Colours of phases: ordered by hue and by lightness at once, so that the order also
 * shows without colour vision and in grey print.
 */

import { BACKGROUND, GAP, SKEW } from './raster';

export type Rgb = [number, number, number];
export type Theme = 'light' | 'dark';

/** OKLCH (lightness 0..1, chroma, hue in degrees) to sRGB, clipped to what can be shown. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((c) => {
    const clipped = Math.min(Math.max(c, 0), 1);
    const gamma = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(255 * gamma);
  }) as Rgb;
}

/** One colour for each of `count` phases, from violet through blue and green to yellow. */
export function phaseColours(count: number, theme: Theme): Rgb[] {
  const [dark, light] = theme === 'light' ? [0.4, 0.88] : [0.46, 0.92];
  return Array.from({ length: count }, (_, phase) => {
    const part = count > 1 ? phase / (count - 1) : 0.4;
    return oklch(dark + (light - dark) * part, 0.135 - 0.025 * Math.sin(Math.PI * part), 300 - 205 * part);
  });
}

/** Neutral colours of the raster. */
export const NEUTRAL: Record<Theme, { background: Rgb; gap: Rgb; skew: Rgb }> = {
  light: { background: [255, 255, 255], gap: [196, 198, 202], skew: [214, 40, 90] },
  dark: { background: [26, 28, 31], gap: [92, 96, 104], skew: [255, 92, 138] },
};

/** A colour for each code of the raster; all phases but `lit` fade when there is one. */
export function codeColours(phases: Rgb[], theme: Theme, lit: number | null): Uint32Array {
  const { background, gap, skew } = NEUTRAL[theme];
  const colours = new Uint32Array(256);
  const faded = (colour: Rgb) => mix(colour, background, 0.84);
  phases.forEach((colour, phase) => {
    colours[phase + 1] = packed(lit === null || lit === phase ? colour : faded(colour));
  });
  colours[BACKGROUND] = packed(background);
  colours[GAP] = packed(lit === null ? gap : faded(gap));
  colours[SKEW] = packed(skew);
  return colours;
}

/** A colour for each code of the heat map: the more answers, the further from the background. */
export function heatColours(theme: Theme): Uint32Array {
  const [near, far] = theme === 'light' ? [0.94, 0.36] : [0.3, 0.93];
  return Uint32Array.from({ length: 256 }, (_, code) => {
    if (code === 0) return packed(NEUTRAL[theme].background);
    const part = (code - 1) / 254;
    return packed(oklch(near + (far - near) * part, 0.03 + 0.11 * Math.sin(0.5 * Math.PI * part), 250 + 30 * part));
  });
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

function mix(a: Rgb, b: Rgb, part: number): Rgb {
  return a.map((c, i) => Math.round(c + (b[i] - c) * part)) as Rgb;
}

/** As the bytes red, green, blue, alpha of a little-endian word. */
function packed([r, g, b]: Rgb): number {
  return (255 << 24) | (b << 16) | (g << 8) | r;
}
