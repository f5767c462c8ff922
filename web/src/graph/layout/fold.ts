/**
 * How layers are arranged in an area: from left to right, and where that would be too
 * small to read, in several columns for one layer or in several bands of layers, one below
 * the other and every second one backwards, as an ox ploughs. Pure.
 */

/** Sizes that a drawing is made of; the unit is a pixel at scale 1. */
export const NODE = { width: 172, height: 64 } as const;
export const GAP = {
  /** Between layers: edges need room for their labels. */
  layers: 124,
  /** Between columns of one layer. */
  columns: 30,
  rows: 20,
  bands: 60,
  /** Around a bend of a long edge. */
  bends: 12,
} as const;

export interface Fold {
  /** Columns of each layer. */
  columns: number[];
  /** Each band's layers: from, up to and without. */
  bands: [from: number, to: number][];
}

/** How many nodes and bends a layer has. */
export interface Load {
  nodes: number;
  bends: number;
}

/** From this scale on everything can be read: nothing is folded. */
const READABLE = 0.7;
/** A simpler arrangement is taken if it is at least so good. */
const NEARLY = 0.9;
const MOST_BANDS = 48;
const MOST_CUTS = 48;

/** The arrangement that shows the layers largest, or the simplest that is nearly as good. */
export function fold(layers: readonly Load[], width: number, height: number): Fold {
  let best = arrange(layers, 1, Infinity);
  let most = scale(layers, best, width, height);
  if (most >= READABLE) return best;
  const largest = Math.max(...layers.map(({ nodes }) => nodes));
  const rows = new Set([Infinity, ...Array.from({ length: Math.min(largest, MOST_CUTS) }, (_, i) => Math.ceil(largest / (i + 1)))]);
  // From the simplest on: what comes later has to be clearly better.
  for (let bands = 1; bands <= Math.min(layers.length, MOST_BANDS); bands++) {
    for (const most_rows of rows) {
      const candidate = arrange(layers, bands, most_rows);
      const size = scale(layers, candidate, width, height);
      if (size * NEARLY > most) [best, most] = [candidate, size];
    }
  }
  return best;
}

/** Cuts layers into columns of at most so many rows, and these into bands of about equal width. */
function arrange(layers: readonly Load[], count: number, rows: number): Fold {
  const columns = layers.map(({ nodes }) => Math.max(1, Math.ceil(nodes / rows)));
  const widths = columns.map((columns) => layerWidth(columns) + GAP.layers);
  const share = widths.reduce((sum, width) => sum + width, 0) / count;
  const bands: [number, number][] = [];
  let from = 0;
  let used = 0;
  widths.forEach((width, layer) => {
    used += width;
    const last = layer === widths.length - 1;
    // Half a layer too much is as good as half a layer too little.
    if (last || used + widths[layer + 1] / 2 > share * (bands.length + 1)) {
      bands.push([from, layer + 1]);
      from = layer + 1;
    }
  });
  return { columns, bands };
}

export function layerWidth(columns: number): number {
  return columns * (NODE.width + GAP.columns) - GAP.columns;
}

export function layerHeight({ nodes, bends }: Load, columns: number): number {
  const rows = Math.ceil(nodes / columns) * (NODE.height + GAP.rows) - GAP.rows;
  return columns === 1 ? rows + bends * GAP.bends : rows;
}

/** How large the arrangement is in an area. */
function scale(layers: readonly Load[], { columns, bands }: Fold, width: number, height: number): number {
  let wide = 0;
  let high = -GAP.bands;
  for (const [from, to] of bands) {
    let long = -GAP.layers;
    let tall = 0;
    for (let layer = from; layer < to; layer++) {
      long += layerWidth(columns[layer]) + GAP.layers;
      tall = Math.max(tall, layerHeight(layers[layer], columns[layer]));
    }
    wide = Math.max(wide, long);
    high += tall + GAP.bands;
  }
  return Math.min(width / wide, height / high);
}
