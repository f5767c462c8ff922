/** Draws a scene on a canvas: as much of it as can be read at its scale. */

import { errorShare, errorStep, rate, time, type Figures } from '../data/figures';
import { edgeWidth } from '../data/shade';
import { GAP, NODE } from '../layout/fold';
import { along, type Cubic } from './curves';
import type { Hit, Scene } from './scene';

/** Colours of the page. */
export interface Ink {
  page: string;
  plot: string;
  text: string;
  muted: string;
  control: string;
  accent: string;
  fail: string;
  /** One for each step of failures. */
  errors: string[];
}

export interface Picture {
  scene: Scene;
  /** In the order of the scene. */
  services: Figures[];
  edges: Figures[];
  /** What is chosen, and what the pointer is at: these and their neighbours stand out. */
  chosen: Hit;
  pointed: Hit;
  ink: Ink;
}

export interface Camera {
  scale: number;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Pixels of the screen for each of the page. */
  ratio: number;
}

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif";
/** Height of a line of text in pixels of the page. */
const LINE = 14;
/** Narrower boxes have no text. */
const NARROW = 40;
/** From this scale on edges have labels, if there are not too many in sight. */
const LABELS = 0.6;
const MOST_LABELS = 60;
/** What does not stand out while something else does. */
const FADED = 0.18;
/** So many edges together still show what is between them; more are let through by each other. */
const CLEAR_EDGES = 150;
/** A service without text is drawn smaller, so that columns stay apart. */
const MARK = 0.66;

export function paint(canvas: CanvasRenderingContext2D, picture: Picture, camera: Camera): void {
  const { scene } = picture;
  canvas.setTransform(1, 0, 0, 1, 0, 0);
  canvas.clearRect(0, 0, camera.width * camera.ratio, camera.height * camera.ratio);
  canvas.setTransform(camera.ratio, 0, 0, camera.ratio, 0, 0);
  const lit = neighbourhood(scene, picture.pointed ?? picture.chosen);
  const most = picture.edges.reduce((most, { rate }) => Math.max(most, rate), 0);

  // Lit edges lie above the others, and failing ones above those that are not.
  const order = scene.edges.map((_, i) => i);
  const rank = (i: number) => (lit?.edges.has(i) ? 10 : 0) + errorStep(picture.edges[i].errors);
  order.sort((a, b) => rank(a) - rank(b));
  const clear = scene.edges.length <= CLEAR_EDGES ? 1 : Math.max(0.25, Math.min(1, camera.scale));
  const labelled: number[] = [];
  for (const i of order) {
    if (!inSight(scene.edges[i].curves, camera)) continue;
    const bright = !lit || lit.edges.has(i);
    canvas.globalAlpha = !bright ? FADED * clear : lit || errorStep(picture.edges[i].errors) > 0 ? 1 : clear;
    edge(canvas, picture, camera, i, most);
    if (bright) labelled.push(i);
  }
  scene.names.forEach((_, i) => {
    canvas.globalAlpha = !lit || lit.services.has(i) ? 1 : FADED + 0.12;
    node(canvas, picture, camera, i);
  });
  canvas.globalAlpha = 1;
  if (camera.scale >= LABELS && labelled.length <= MOST_LABELS) {
    for (const i of labelled) label(canvas, picture, camera, i);
  }
}

/** A service with all that it calls and that calls it; an edge with its ends. */
function neighbourhood(scene: Scene, hit: Hit): { services: Set<number>; edges: Set<number> } | null {
  if (hit === null) return null;
  const edges = new Set(hit.kind === 'edge' ? [hit.place] : [...scene.into[hit.place], ...scene.outOf[hit.place]]);
  const services = new Set<number>(hit.kind === 'service' ? [hit.place] : []);
  for (const i of edges) services.add(scene.edges[i].from).add(scene.edges[i].to);
  return { services, edges };
}

function inSight(curves: readonly Cubic[], { scale, left, top, width, height }: Camera): boolean {
  return curves.some((curve) => {
    const xs = curve.map(({ x }) => left + x * scale);
    const ys = curve.map(({ y }) => top + y * scale);
    return Math.max(...xs) >= 0 && Math.min(...xs) <= width && Math.max(...ys) >= 0 && Math.min(...ys) <= height;
  });
}

function edge(canvas: CanvasRenderingContext2D, picture: Picture, camera: Camera, i: number, most: number): void {
  const { scale, left, top } = camera;
  const { curves } = picture.scene.edges[i];
  const { rate, errors } = picture.edges[i];
  const { ink, chosen } = picture;
  const size = Math.min(Math.max(scale, 0.22), 1.4);
  const width = edgeWidth(rate, most) * size;
  const colour = ink.errors[errorStep(errors)];
  canvas.beginPath();
  canvas.moveTo(left + curves[0][0].x * scale, top + curves[0][0].y * scale);
  for (const [, b, c, d] of curves) {
    canvas.bezierCurveTo(
      left + b.x * scale, top + b.y * scale,
      left + c.x * scale, top + c.y * scale,
      left + d.x * scale, top + d.y * scale,
    );
  }
  if (chosen?.kind === 'edge' && chosen.place === i) {
    canvas.strokeStyle = ink.accent;
    canvas.lineWidth = width + 4;
    canvas.stroke();
  }
  canvas.strokeStyle = colour;
  canvas.lineWidth = width;
  // An edge that nothing passes is there, but thin.
  canvas.setLineDash(rate > 0 ? [] : [3, 4]);
  canvas.stroke();
  canvas.setLineDash([]);
  if (scale < 0.3) return;
  const end = curves.at(-1)![3];
  const back = curves.at(-1)![2].x < end.x ? -1 : 1;
  const [x, y, long] = [left + end.x * scale, top + end.y * scale, (5 + width) * Math.min(size, 1)];
  canvas.fillStyle = colour;
  canvas.beginPath();
  canvas.moveTo(x, y);
  canvas.lineTo(x + back * long, y - long * 0.55);
  canvas.lineTo(x + back * long, y + long * 0.55);
  canvas.fill();
}

function node(canvas: CanvasRenderingContext2D, picture: Picture, camera: Camera, i: number): void {
  const { scene, ink, chosen, pointed } = picture;
  const { scale } = camera;
  const [width, height] = [NODE.width * scale, NODE.height * scale];
  const x = camera.left + scene.layout.x[i] * scale - width / 2;
  const y = camera.top + scene.layout.y[i] * scale - height / 2;
  if (x > camera.width || y > camera.height || x + width < 0 || y + height < 0) return;
  const figures = picture.services[i];
  const step = errorStep(figures.errors);
  const colour = ink.errors[step];
  const idle = figures.rate === 0;
  const picked = chosen?.kind === 'service' && chosen.place === i;
  const under = pointed?.kind === 'service' && pointed.place === i;
  const large = width >= NARROW;

  const alpha = canvas.globalAlpha;
  // What is behind a faded box must not show through it.
  canvas.globalAlpha = 1;
  canvas.beginPath();
  if (large) canvas.roundRect(x, y, width, height, Math.min(7 * scale, 8));
  else canvas.roundRect(x + (width * (1 - MARK)) / 2, y + (height * (1 - MARK)) / 2, width * MARK, height * MARK, 2);
  canvas.fillStyle = large ? ink.plot : ink.page;
  canvas.fill();
  canvas.globalAlpha = alpha;
  if (!large) {
    canvas.fillStyle = idle ? ink.control : colour;
    canvas.fill();
  } else {
    // As a bar too, so that width tells what colour tells.
    canvas.save();
    canvas.clip();
    canvas.fillStyle = idle ? ink.control : colour;
    canvas.fillRect(x, y, (step === 0 ? 4 : 4 + 3 * step) * Math.min(scale, 1), height);
    canvas.restore();
  }
  canvas.strokeStyle = picked ? ink.accent : under ? ink.text : step > 0 && !idle ? colour : ink.control;
  canvas.lineWidth = picked ? 2.5 : step > 0 && !idle ? 1.75 : 1;
  if (large || picked || under) canvas.stroke();
  if (!large) return;
  const bar = (8 + 3 * step) * Math.min(scale, 1) + 3;
  lines(canvas, picture, i, { x: x + bar, y, height, room: width - bar - 4, size: Math.max(1, scale) });
}

interface Box {
  x: number;
  y: number;
  height: number;
  /** For text. */
  room: number;
  /** Times the usual size of text. */
  size: number;
}

function lines(canvas: CanvasRenderingContext2D, picture: Picture, i: number, box: Box): void {
  const { rate: perSecond, errors, p50_ns, p99_ns, in_flight } = picture.services[i];
  const { ink } = picture;
  const line = LINE * box.size;
  const most = Math.min(3, Math.floor((box.height - 3) / line));
  if (most < 1) return;
  const bad = errors !== null && errors > 0;
  const texts: [string, string][] = [
    [picture.scene.names[i], ink.text],
    bad
      ? [`${rate(perSecond)} · ${errorShare(errors)} fail`, ink.fail]
      : [`${rate(perSecond)} · ${in_flight} in flight`, ink.muted],
    [`p50 ${time(p50_ns)} · p99 ${time(p99_ns)}`, ink.muted],
  ];
  const room = box.room;
  const top = box.y + (box.height - most * line) / 2;
  canvas.textBaseline = 'middle';
  canvas.textAlign = 'left';
  texts.slice(0, most).forEach(([text, colour], n) => {
    canvas.font = `${n === 0 ? 600 : 400} ${(n === 0 ? 12 : 11) * box.size}px ${FONT}`;
    canvas.fillStyle = colour;
    canvas.fillText(cut(canvas, text, room), box.x, top + (n + 0.5) * line);
  });
}

/** As much of a text as has room, with an ellipsis. */
function cut(canvas: CanvasRenderingContext2D, text: string, room: number): string {
  const whole = canvas.measureText(text).width;
  if (whole <= room) return text;
  const letters = [...text];
  let keep = Math.floor((letters.length * room) / whole);
  while (keep > 0 && canvas.measureText(`${letters.slice(0, keep).join('')}…`).width > room) keep--;
  return keep > 0 ? `${letters.slice(0, keep).join('')}…` : '';
}

function label(canvas: CanvasRenderingContext2D, picture: Picture, camera: Camera, i: number): void {
  const { scene, ink } = picture;
  const { curves, label } = scene.edges[i];
  const figures = picture.edges[i];
  if (figures.rate === 0) return;
  const { x, y } = along(curves[label.curve], label.part);
  const [left, top] = [camera.left + x * camera.scale, camera.top + y * camera.scale];
  const size = Math.max(1, camera.scale);
  const bad = figures.errors !== null && figures.errors > 0;
  const texts: [string, string][] = [
    [bad ? `${rate(figures.rate)} · ${errorShare(figures.errors)}` : rate(figures.rate), bad ? ink.fail : ink.text],
    [time(figures.p50_ns), ink.muted],
  ];
  canvas.font = `400 ${10.5 * size}px ${FONT}`;
  canvas.textAlign = 'center';
  canvas.textBaseline = 'middle';
  canvas.lineJoin = 'round';
  canvas.lineWidth = 4;
  canvas.strokeStyle = ink.page;
  texts.forEach(([text, colour], n) => {
    const room = GAP.layers * camera.scale - 6;
    const at = top + (n === 0 ? -8.5 : 9) * size;
    const short = cut(canvas, text, Math.max(room, 60));
    canvas.strokeText(short, left, at);
    canvas.fillStyle = colour;
    canvas.fillText(short, left, at);
  });
}
