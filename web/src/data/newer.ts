/** Newer data of a run that goes on, from the server that the page came from. */

import { inflate } from './decode';
import type { Sent } from './growing';
import { read, type Grown, type Run } from './run';

/** Longest wait for an answer; the server itself waits some seconds for something new. */
const WITHIN_MS = 15_000;

export interface Newer {
  run: Run;
  blob: Uint8Array;
  /** What has changed of lifecycles that go on; null: none does. */
  sent: Sent | null;
  /** The server's name for these data. */
  tag: string | null;
  /** Time that reading them took, in milliseconds. */
  read_ms: number;
}

/**
 * Data other than those of `tag`; null when there are none yet. Throws when the server does
 * not answer, or not as it should. `search` has the token.
 */
export async function newer(tag: string | null, search: string): Promise<Newer | null> {
  const answer = await fetch(`/data${search}`, {
    signal: AbortSignal.timeout(WITHIN_MS),
    headers: tag === null ? {} : { 'if-none-match': tag },
    cache: 'no-store',
  });
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error((await answer.text()).trim() || `it answered with ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  const began = performance.now();
  // The lengths of three parts in four bytes each: JSON, the deflated blob, and what lifecycles have become,
  // whose numbers come last.
  const lengths = new DataView(bytes);
  let end = 12;
  const [json, columns, grown] = [0, 4, 8].map((at) => {
    const length = lengths.getUint32(at, true);
    return new Uint8Array(bytes, end, ((end += length), length));
  });
  const parsed = (part: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(part));
  const run = read(parsed(json));
  const sent = grown.length > 0 ? { grown: parsed(grown) as Grown[], bytes, at: end } : null;
  const read_ms = performance.now() - began;
  return { run, blob: await inflate(columns), sent, tag: answer.headers.get('etag'), read_ms };
}

/** Has something done to the run; throws what the server says if it was not. */
export async function send(act: string, body: object, search: string): Promise<void> {
  const answer = await fetch(`/${act}${search}`, {
    method: 'POST',
    signal: AbortSignal.timeout(WITHIN_MS),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `it answered with ${answer.status}`);
}
