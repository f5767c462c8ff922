/** The compliance of the fleet as it is now, and one node that is looked at. */

import { ask, NoToken } from '../data/ask';
import type { Global, Hour, Listed, NodeTree } from '../data/shapes';
import { worstFirst } from '../data/statuses';
import { poll, type Polling } from '../../state/poll';

const EVERY_MS = 5_000;
/** The list of nodes is asked for less often when it is long, which is from so many on. */
const NODES_EVERY_MS = 30_000;
const MANY_NODES = 1_000;
/** Of the tab alone: another one, or a restart of the browser, asks anew. */
const KEPT_AS = 'compliance-token';

export class Fleet {
  token = $state(sessionStorage.getItem(KEPT_AS) ?? '');
  /** Why the token was refused. */
  refused = $state<string | null>(null);
  /** Why there was no answer to the last question. */
  error = $state<string | null>(null);
  global = $state.raw<Global | null>(null);
  hours = $state.raw<Hour[]>([]);
  /** Worst first. */
  rules = $state.raw<Listed[]>([]);
  /** Worst first. */
  nodes = $state.raw<Listed[]>([]);
  pending = $state(0);
  at = $state<Date | null>(null);

  chosen = $state<string | null>(null);
  node = $state.raw<NodeTree | null>(null);
  nodeError = $state<string | null>(null);

  private polling: Polling | null = null;
  private nodesAt = -Infinity;

  /** Asks until the returned function is called. */
  start(): () => void {
    this.polling = poll(() => this.next(), () => EVERY_MS);
    return () => this.polling?.stop();
  }

  use(token: string): void {
    this.token = token.trim();
    sessionStorage.setItem(KEPT_AS, this.token);
    this.refused = null;
    this.error = null;
    this.nodesAt = -Infinity;
    this.polling?.now();
  }

  /** Nothing that the token opened stays on the page. */
  forget(why: string | null): void {
    sessionStorage.removeItem(KEPT_AS);
    this.token = '';
    this.refused = why;
    this.error = null;
    this.global = null;
    this.rules = [];
    this.nodes = [];
    this.hours = [];
    this.choose(null);
  }

  choose(id: string | null): void {
    this.chosen = id;
    this.node = null;
    this.nodeError = null;
    if (id !== null) void this.look(id);
  }

  private async next(): Promise<boolean> {
    const { token } = this;
    // Without a token there is nothing to ask; `use` asks at once.
    if (token === '') return true;
    try {
      const { globalCompliance } = await ask<{ globalCompliance: Global }>('compliance', token);
      const { hours } = await ask<{ hours: Hour[] }>('compliance/history', token);
      const { rules } = await ask<{ rules: Listed[] }>('rules/compliance?level=1', token);
      let nodes: Listed[] | null = null;
      let pending = 0;
      const now = performance.now();
      if (now - this.nodesAt >= NODES_EVERY_MS || this.nodes.length < MANY_NODES) {
        nodes = (await ask<{ nodes: Listed[] }>('nodes/compliance?level=0', token)).nodes;
        if (nodes.length === 0) pending = (await ask<{ nodes: unknown[] }>('nodes/pending', token)).nodes.length;
      }
      // Another token, or none, meanwhile.
      if (token !== this.token) return true;
      this.global = globalCompliance;
      this.hours = hours;
      this.rules = worstFirst(rules);
      if (nodes) {
        this.nodes = worstFirst(nodes);
        this.pending = pending;
        this.nodesAt = now;
      }
      this.error = null;
      this.at = new Date();
      if (this.chosen !== null) await this.look(this.chosen);
      return true;
    } catch (error) {
      return this.failed(error, token);
    }
  }

  private failed(error: unknown, token: string): boolean {
    if (token !== this.token) return true;
    const why = error instanceof Error ? error.message : String(error);
    if (error instanceof NoToken) {
      this.forget(why);
      return true;
    }
    this.error = why;
    return false;
  }

  private async look(id: string): Promise<void> {
    const { token } = this;
    try {
      const { nodes } = await ask<{ nodes: NodeTree[] }>(`nodes/${encodeURIComponent(id)}/compliance?level=10`, token);
      if (this.chosen !== id || token !== this.token) return;
      this.node = nodes[0] ?? null;
      this.nodeError = null;
    } catch (error) {
      if (this.chosen !== id || token !== this.token) return;
      if (error instanceof NoToken) this.forget(error.message);
      else this.nodeError = error instanceof Error ? error.message : String(error);
    }
  }
}
