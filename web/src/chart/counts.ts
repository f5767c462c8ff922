/** Which kind of interval most entities of a pixel are in. */

/** How many of one kind there are in each pixel, and of the kinds before the most. */
export class Counts {
  /** Where counts change, and the pixels of each row in which they do. */
  readonly change: Int16Array;
  readonly left: Int16Array;
  readonly right: Int16Array;
  private readonly most: Int16Array;

  /** Room for so many entities in one row of pixels. */
  static readonly MOST = 2 ** 15 - 1;

  constructor(
    readonly width: number,
    height: number,
  ) {
    this.change = new Int16Array((width + 1) * height);
    this.most = new Int16Array(width * height);
    this.left = new Int16Array(height).fill(width);
    this.right = new Int16Array(height);
  }

  /** Counts one over the pixels a..b of a row. */
  add(y: number, a: number, b: number): void {
    if (a >= b) return;
    const row = y * (this.width + 1);
    this.change[row + a]++;
    this.change[row + b]--;
    if (a < this.left[y]) this.left[y] = a;
    if (b > this.right[y]) this.right[y] = b;
  }

  /** A kind has been counted: it wins where more are of it than of any before. The changes are forgotten. */
  resolve(codes: Uint8Array, code: number): void {
    const { change, most, left, right, width } = this;
    for (let y = 0; y < left.length; y++) {
      const [from, to] = [left[y], right[y]];
      if (from >= to) continue;
      const row = y * (width + 1);
      for (let k = row + from, pixel = y * width + from, end = row + to, n = 0; k < end; k++, pixel++) {
        n += change[k];
        if (n > most[pixel]) {
          most[pixel] = n;
          codes[pixel] = code;
        }
        change[k] = 0;
      }
      change[row + to] = 0;
      left[y] = width;
      right[y] = 0;
    }
  }
}
