/** The service or edge that the reader looks at. */

export type Chosen = { kind: 'service'; name: string } | { kind: 'edge'; id: string };

export class Choice {
  chosen = $state.raw<Chosen | null>(null);
  /** Counts wishes to see it in the drawing. */
  shown = $state(0);

  service(name: string, show = false): void {
    this.chosen = { kind: 'service', name };
    if (show) this.shown++;
  }
  edge(id: string): void {
    this.chosen = { kind: 'edge', id };
  }
  clear(): void {
    this.chosen = null;
  }
}
