/** The graph as it is now: what it is, and what it did in the last seconds. */

import { ask } from '../data/ask';
import { figures, NOTHING, type Figures } from '../data/figures';
import type { EdgeStats, ServiceStats, Stats, Topology } from '../data/shapes';
import { poll, type Polling } from '../../state/poll';

/** How often figures are asked for. */
const EVERY_MS = 1000;
/** Answers that are kept for the curves. */
const KEPT = 180;
/** A machine's facts and refused profiles change without a new revision. */
const TOPOLOGY_EVERY_MS = 10_000;

/** One answer, as far as curves need it. */
export interface Moment {
  at_ms: number;
  services: Map<string, Figures>;
  edges: Map<string, Figures>;
}

export class Live {
  topology = $state.raw<Topology | null>(null);
  stats = $state.raw<Stats | null>(null);
  /** The last answers, oldest first. */
  history = $state.raw<Moment[]>([]);
  /** Why there was no answer to the last question. */
  error = $state<string | null>(null);
  /** The reader wants the picture to stand still. */
  paused = $state(false);
  /** How many seconds each answer covers. */
  seconds = $state(5);

  private polling: Polling | null = null;
  private topologyAt = -Infinity;
  /** Figures are asked for once, also of a picture that stands still. */
  private wanted = false;

  services = $derived(new Map(this.stats?.services.map((of) => [of.name, of])));
  edges = $derived(new Map(this.stats?.edges.map((of) => [of.id, of])));

  service(name: string): ServiceStats | undefined {
    return this.services.get(name);
  }
  edge(id: string): EdgeStats | undefined {
    return this.edges.get(id);
  }

  /** Asks until the returned function is called. */
  start(): () => void {
    this.polling = poll(() => this.next(), () => EVERY_MS);
    return () => this.polling?.stop();
  }

  setSeconds(seconds: number): void {
    this.seconds = seconds;
    this.wanted = true;
    this.polling?.now();
  }

  toggle(): void {
    this.paused = !this.paused;
    if (!this.paused) this.polling?.now();
  }

  private async next(): Promise<boolean> {
    const { wanted } = this;
    if (this.paused && this.topology && !wanted) return true;
    this.wanted = false;
    try {
      const stats = await ask<Stats>(`/stats?seconds=${this.seconds}`);
      const old = performance.now() - this.topologyAt > TOPOLOGY_EVERY_MS;
      if (old || stats.revision !== this.topology?.revision) await this.readTopology();
      this.stats = stats;
      this.keep(stats);
      this.error = null;
      return true;
    } catch (error) {
      this.wanted ||= wanted;
      this.error = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  private async readTopology(): Promise<void> {
    const topology = await ask<Topology>('/topology');
    this.topologyAt = performance.now();
    this.topology = topology;
  }

  private keep(stats: Stats): void {
    const moment: Moment = {
      at_ms: stats.at_unix_ms,
      services: new Map(stats.services.map((of) => [of.name, figures(of)])),
      edges: new Map(stats.edges.map((of) => [of.id, figures(of)])),
    };
    // Where a clock was put back, what was before lies in the future.
    const earlier = this.history.filter(({ at_ms }) => at_ms <= moment.at_ms);
    this.history = [...earlier.slice(1 - KEPT), moment];
  }

  /** The figures of a service or an edge over the last minutes. */
  past(kind: 'services' | 'edges', id: string): { at_ms: number; figures: Figures }[] {
    return this.history.map((moment) => ({ at_ms: moment.at_ms, figures: moment[kind].get(id) ?? NOTHING }));
  }
}
