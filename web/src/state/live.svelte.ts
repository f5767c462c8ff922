/** A run that goes on, as the page shows it. */

import { tick } from 'svelte';
import { Growing } from '../data/growing';
import type { Lives } from '../data/lives';
import type { Newer } from '../data/newer';
import type { Act, Run } from '../data/run';
import { poll, type Polling } from './poll';

/** Shortest time between two questions; one that waits for its answer costs nothing, and the server answers five times a second. */
const EVERY_MS = 100;
/** The same while the picture stands still: each time comes all that is newer than that. */
const STILL_MS = 1000;
/** Behind each drawing the browser has at least this part of its time for everything else. */
const REST = 1 / 2;

export class LiveRun {
  run = $state.raw<Run>()!;
  blob = $state.raw<Uint8Array>()!;
  /** Lifecycles that go on. */
  lives = $state.raw<Lives[]>([]);
  /** Why there was no answer to the last question. */
  error = $state<string | null>(null);
  /** The reader wants the picture to stand still. */
  paused = $state(false);
  /** Why the last thing that was to be done was not. */
  refused = $state<string | null>(null);

  private readonly ask: (tag: string | null) => Promise<Newer | null>;
  private readonly send: (act: string, body: object) => Promise<void>;
  private polling: Polling | null = null;
  private readonly growing = new Growing();
  /** The server's name for what is shown. */
  private tag: string | null = null;
  /** What came while the picture stood still. */
  private waiting: Newer | null = null;
  private drawing_ms = 0;
  private asked_ms = 0;

  constructor(
    run: Run,
    blob: Uint8Array,
    ask: (tag: string | null) => Promise<Newer | null>,
    send: (act: string, body: object) => Promise<void>,
  ) {
    this.run = run;
    this.blob = blob;
    this.ask = ask;
    this.send = send;
  }

  get over(): boolean {
    return this.run.underway === null;
  }

  /** Asks until the run is over, or the returned function is called. */
  start(page: Document = document): () => void {
    const every = () => {
      const passed = this.error === null ? performance.now() - this.asked_ms : 0;
      return Math.max((this.paused ? STILL_MS : EVERY_MS) - passed, REST * this.drawing_ms);
    };
    this.polling = poll(() => this.next(), every, page);
    return () => this.polling?.stop();
  }

  toggle(): void {
    this.paused = !this.paused;
    const { waiting } = this;
    this.waiting = null;
    if (!this.paused && waiting) void this.show(waiting).catch((error: unknown) => this.failed(error));
  }

  /** Has something done to the run; tells whether it was. */
  async act(act: Act, body: object): Promise<boolean> {
    try {
      await this.send(act, body);
      this.refused = null;
    } catch (error) {
      this.refused = error instanceof Error ? error.message : String(error);
    }
    return this.refused === null;
  }

  private async next(): Promise<boolean> {
    this.asked_ms = performance.now();
    try {
      const newer = await this.ask(this.tag);
      this.error = null;
      if (newer === null) return true;
      // There is nothing after the end, and soon nobody to ask.
      if (newer.run.underway === null) this.polling?.stop();
      if (this.paused) this.waiting = newer;
      else await this.show(newer);
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    }
  }

  private failed(error: unknown): void {
    this.error = error instanceof Error ? error.message : String(error);
  }

  private async show({ run, blob, sent, tag, read_ms }: Newer): Promise<void> {
    const began = performance.now();
    // Should this fail, all of it is asked for again.
    this.tag = null;
    if (sent) this.lives = this.growing.take(sent);
    this.run = run;
    this.blob = blob;
    this.tag = tag;
    await tick();
    this.drawing_ms = performance.now() - began + read_ms;
    // `npm run speed:live` reads it.
    performance.measure('update', { start: began - read_ms, duration: this.drawing_ms, detail: sent?.grown.map(({ rows }) => rows) });
    performance.clearMeasures('update');
  }
}
