/** Questions to the control server that the page came from. */

/** Longest wait for an answer. */
const WITHIN_MS = 10_000;

/** An answer that says no, as far as it says why. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    why: string,
  ) {
    super(why);
  }
}

/**
 * The answer to `GET path`; throws `Refused` if the server refuses, another error when there
 * is no answer or not the expected form.
 */
export async function ask<T>(path: string): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(WITHIN_MS), headers: { accept: 'application/json' } });
  } catch (error) {
    const late = error instanceof DOMException && error.name === 'TimeoutError';
    throw new Error(late ? `no answer within ${WITHIN_MS / 1000} s` : 'no connection to the graph: it has stopped, or is out of reach');
  }
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Error(`GET ${path} was answered with ${answer.status} and no JSON`);
  }
  if (!answer.ok) {
    const why = (body as { error?: unknown } | null)?.error;
    throw new Refused(answer.status, typeof why === 'string' ? why : `GET ${path} was answered with ${answer.status}`);
  }
  return body as T;
}
