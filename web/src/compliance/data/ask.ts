/** Questions to the REST API of the server that the page came from. */

/** Longest wait for an answer. */
const WITHIN_MS = 20_000;
const API = '/rudder/api/latest/';

/** The token is missing, or none of this server. */
export class NoToken extends Error {}

/**
 * The data of `GET path`; throws `NoToken` if the token is refused, another error, whose text
 * is for the reader, when there is no answer or one that says no.
 */
export async function ask<T>(path: string, token: string): Promise<T> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(API + path, {
      signal: AbortSignal.timeout(WITHIN_MS),
      headers: { accept: 'application/json', 'X-API-Token': token },
      cache: 'no-store',
    });
    text = await answer.text();
  } catch (error) {
    if (error instanceof TypeError && /header|ByteString|ISO-8859-1/i.test(error.message)) throw new NoToken('the token has characters that no token has');
    const late = error instanceof DOMException && error.name === 'TimeoutError';
    throw new Error(late ? `no answer within ${WITHIN_MS / 1000} s` : 'no connection to the server: it has stopped, or is out of reach');
  }
  let body: { data?: T; errorDetails?: string };
  try {
    body = JSON.parse(text);
  } catch {
    throw new Error(`GET ${path} was answered with ${answer.status} and no JSON`);
  }
  if (answer.status === 401) throw new NoToken('this is no token of this server, or it was revoked');
  if (!answer.ok || body.data === undefined) throw new Error(body.errorDetails ?? `GET ${path} was answered with ${answer.status}`);
  return body.data;
}
