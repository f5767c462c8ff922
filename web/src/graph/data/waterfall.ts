/** A trace as rows, one for each span, and the path that decided how long it took. Pure. */

import type { Span } from './shapes';

export interface Row {
  span: Span;
  depth: number;
  /** Rows below it, at any depth. */
  inner: number;
  /** Stretches in which it is itself on the critical path. */
  critical: [from: number, to: number][];
  /** Its parent is not among the spans. */
  orphan: boolean;
}

/** Work that waits by its nature: time without the processor was not taken from it. */
const COMPUTING = new Set(['cpu', 'ops', 'primes', 'memory']);

/** Clocks of whole microseconds let what was waited for seem to end so much later, as in the analysis. */
const TOLERANCE_NS = 2000;

/** Whether a span may have waited for one below it: who answered before that ended did not. */
function waited(span: Span, child: Span): boolean {
  return span.kind === 'client' || failed(span) || child.end_ns <= span.end_ns + TOLERANCE_NS;
}

/** Time that computing work took and was not on the processor: others had it. */
export function stolen(span: Span): number {
  if (span.kind !== 'work' || !COMPUTING.has(span.name)) return 0;
  return Math.max(0, span.end_ns - span.start_ns - span.queue_ns - span.cpu_ns);
}

export function failed(span: Span): boolean {
  return span.cause !== '' || span.status >= 500;
}

/** Rows from the top: each span before those that it caused, these in the order of their start. */
export function rows(spans: readonly Span[]): Row[] {
  const known = new Map<string, Span>();
  // A span that came twice is shown once.
  for (const span of spans) if (!known.has(span.id)) known.set(span.id, span);
  const children = new Map<string, Span[]>();
  const roots: Span[] = [];
  for (const span of known.values()) {
    const parent = span.parent !== null && span.parent !== span.id ? known.get(span.parent) : undefined;
    if (!parent) roots.push(span);
    else if (children.has(parent.id)) children.get(parent.id)!.push(span);
    else children.set(parent.id, [span]);
  }
  const inOrder = (a: Span, b: Span) => a.start_ns - b.start_ns || b.end_ns - a.end_ns;
  for (const all of children.values()) all.sort(inOrder);
  roots.sort(inOrder);

  const found: Row[] = [];
  const seen = new Set<string>();
  const stack = roots.map((span) => ({ span, depth: 0 })).reverse();
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { span, depth } = next;
    seen.add(span.id);
    found.push({ span, depth, inner: 0, critical: [], orphan: depth === 0 && span.parent !== null });
    const inner = children.get(span.id) ?? [];
    for (let i = inner.length; i-- > 0; ) stack.push({ span: inner[i], depth: depth + 1 });
  }
  // Spans that are each other's parents hang on no root.
  for (const span of known.values()) {
    if (!seen.has(span.id)) found.push({ span, depth: 0, inner: 0, critical: [], orphan: true });
  }
  const open: Row[] = [];
  for (const row of found) {
    while (open.length > 0 && open.at(-1)!.depth >= row.depth) open.pop();
    for (const outer of open) outer.inner++;
    open.push(row);
  }
  if (roots.length > 0) light(roots, children, new Map(found.map((row) => [row.span.id, row])));
  return found;
}

/**
 * Marks the critical path of the root that ends last: from the end of a span back, the child
 * that ended last is on it, then the one that ended last before that one began, and so on;
 * what no child covers is the span's own. Children of a span that failed are clipped to it.
 */
function light(roots: Span[], children: Map<string, Span[]>, row: Map<string, Row>): void {
  // The client's request, not what a service did after it had answered.
  const root = roots.reduce((best, span) => (span.end_ns - span.start_ns > best.end_ns - best.start_ns ? span : best));
  const stack: [Span, number, number][] = [[root, root.start_ns, root.end_ns]];
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [span, from, to] = next;
    const own: [number, number][] = [];
    let until = to;
    const ends = (children.get(span.id) ?? []).slice().sort((a, b) => b.end_ns - a.end_ns || b.start_ns - a.start_ns);
    for (const child of ends) {
      const [start, end] = [Math.max(child.start_ns, from), Math.min(child.end_ns, to)];
      if (end > until || start >= end || !waited(span, child)) continue;
      if (end < until) own.push([end, until]);
      stack.push([child, start, end]);
      until = start;
    }
    if (until > from) own.push([from, until]);
    row.get(span.id)!.critical = own.reverse();
  }
}

/** The rows that show when those of `closed` hide what is below them. */
export function shown(all: readonly Row[], closed: ReadonlySet<string>): Row[] {
  const found: Row[] = [];
  for (let i = 0; i < all.length; i++) {
    found.push(all[i]);
    if (closed.has(all[i].span.id)) i += all[i].inner;
  }
  return found;
}
