/** Which part of a drawing is seen, and how large. */

/** Smallest and largest scale, relative to the one that fits all. */
const LEAST = 0.5;
const MOST = 3;
/** All that fits is not shown larger than this. */
const FIT_MOST = 1.25;
/** Room around all. */
const ROOM = 20;

export class View {
  scale = $state(1);
  /** Where the drawing's corner is, in pixels of the screen. */
  left = $state(0);
  top = $state(0);
  /** It fits, and stays fitted when the screen changes. */
  fitted = $state(true);

  private drawing = { width: 1, height: 1 };
  private area = { width: 1, height: 1 };

  /** Tells how large the drawing and the area for it are. */
  resize(drawing: { width: number; height: number }, area: { width: number; height: number }): void {
    this.drawing = drawing;
    this.area = area;
    if (this.fitted) this.fit();
  }

  private get fitting(): number {
    const { drawing, area } = this;
    return Math.min((area.width - 2 * ROOM) / (drawing.width || 1), (area.height - 2 * ROOM) / (drawing.height || 1), FIT_MOST);
  }

  /** Shows all. */
  fit(): void {
    this.scale = Math.max(this.fitting, 1e-3);
    this.left = (this.area.width - this.drawing.width * this.scale) / 2;
    this.top = (this.area.height - this.drawing.height * this.scale) / 2;
    this.fitted = true;
  }

  /** Changes the scale; the point of the screen stays where it is. */
  zoom(times: number, x = this.area.width / 2, y = this.area.height / 2): void {
    const least = Math.min(this.fitting * LEAST, 1);
    const scale = Math.min(Math.max(this.scale * times, least), MOST);
    const by = scale / this.scale;
    this.left = x - (x - this.left) * by;
    this.top = y - (y - this.top) * by;
    this.scale = scale;
    this.fitted = false;
    this.hold();
  }

  pan(x: number, y: number): void {
    this.left += x;
    this.top += y;
    this.fitted = false;
    this.hold();
  }

  /** Brings a point of the drawing to the middle, readable. */
  show(x: number, y: number): void {
    const readable = 0.75;
    if (this.scale < readable) this.scale = readable;
    this.left = this.area.width / 2 - x * this.scale;
    this.top = this.area.height / 2 - y * this.scale;
    this.fitted = false;
    this.hold();
  }

  /** Whether a point of the drawing is well inside the area. */
  sees(x: number, y: number): boolean {
    const [left, top] = [this.left + x * this.scale, this.top + y * this.scale];
    return left > ROOM && top > ROOM && left < this.area.width - ROOM && top < this.area.height - ROOM;
  }

  /** From the screen to the drawing. */
  at(x: number, y: number): { x: number; y: number } {
    return { x: (x - this.left) / this.scale, y: (y - this.top) / this.scale };
  }

  /** Some of the drawing always stays in sight. */
  private hold(): void {
    const keep = 60;
    const { drawing, area, scale } = this;
    this.left = Math.min(Math.max(this.left, keep - drawing.width * scale), area.width - keep);
    this.top = Math.min(Math.max(this.top, keep - drawing.height * scale), area.height - keep);
  }
}
