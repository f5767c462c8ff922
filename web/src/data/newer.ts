/** Newer data of a run that goes on, from the server that the page came from. */

import { inflate } from './decode';
import { read, type Run } from './run';

/** Longest wait for an answer; the server itself waits some seconds for something new. */
const WITHIN_MS = 15_000;

export interface Newer {
  run: Run;
  blob: Uint8Array;
  /** The server's name for these data. */
  tag: string | null;
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
  // The length of the JSON in four bytes, the JSON, and the deflated blob.
  const sent = new Uint8Array(await answer.arrayBuffer());
  const end = 4 + new DataView(sent.buffer).getUint32(0, true);
  const run = read(JSON.parse(new TextDecoder().decode(sent.subarray(4, end))));
  return { run, blob: await inflate(sent.subarray(end)), tag: answer.headers.get('etag') };
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
