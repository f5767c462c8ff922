/** A real graph under a little load: `headroom graph up`. */

import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Requests that are open at once, and the pause after each. */
const CLIENTS = 4;
const PAUSE_MS = 20;

/** Starts the graph of `file` (a copy: it may be changed) and its load; both end with `stop`. */
export async function start(headroom, file) {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-page-'));
  const profile = join(folder, 'graph.toml');
  copyFileSync(file, profile);
  const process = spawn(headroom, ['graph', 'up', profile, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((done) => process.once('exit', done));
  const ready = await Promise.race([line(process.stdout, 'graph.ready'), ended]);
  if (typeof ready !== 'object' || ready === null) throw new Error(`${headroom} graph up ended with ${ready}`);

  const agent = new Agent({ keepAlive: true });
  let going = true;
  const client = async () => {
    while (going) {
      await ask(`http://${ready.address}/`, agent);
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  return {
    url: `http://${ready.admin}/`,
    profile,
    async stop() {
      going = false;
      await Promise.all(clients);
      agent.destroy();
      process.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** What the log says with a message, as soon as it does; null when the log ends before. */
async function line(stream, message) {
  const lines = createInterface({ input: stream });
  try {
    for await (const text of lines) {
      const said = JSON.parse(text);
      if (said.message === message) return said.data;
    }
    return null;
  } finally {
    // What comes later is not read, but must not fill the pipe.
    stream.resume();
  }
}

/** Failures are part of the graph. */
function ask(url, agent) {
  return new Promise((done) => {
    get(url, { agent }, (answer) => answer.resume().once('close', done)).once('error', done);
  });
}
