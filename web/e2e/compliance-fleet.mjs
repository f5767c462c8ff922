/** A real server of compliance with hollow agents. */

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Longest wait for what is to come. */
const WITHIN_MS = 60_000;

const FOLDER = {
  'techniques/file.yml': 'name: A file\nparams:\n  - name: path\nitems:\n  - name: Text\n    method: file_absent\n    params:\n      path: ${file.path}\n',
  'directives/motd.yml': 'technique: file\nparams:\n  path: /motd\n',
  'directives/login.yml': 'technique: file\npolicyMode: audit\nparams:\n  path: /login\n',
  'rules/all.yml': 'directives: [motd]\ntargets: [special:all]\n',
  'rules/audit.yml': 'directives: [login]\ntargets: [special:all]\n',
};

/** Starts a server without nodes; all of it ends with `stop`. */
export async function start(headroom) {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-compliance-'));
  const policy = join(folder, 'policy');
  for (const [name, text] of Object.entries(FOLDER)) {
    mkdirSync(join(policy, name, '..'), { recursive: true });
    writeFileSync(join(policy, name), text);
  }
  const data = join(folder, 'server');
  const started = [];
  const run = (...words) => {
    const process = spawn(headroom, ['compliance', ...words], { stdio: 'ignore' });
    const ended = new Promise((done) => process.once('exit', done));
    started.push({ process, ended });
    return started.at(-1);
  };
  const end = async ({ process, ended }) => {
    process.kill('SIGTERM');
    await ended;
  };
  const server = run('server', '--data', data, '--listen', '127.0.0.1:0', '--policy', policy, '--accept', 'all');
  // The file of the address is there once the server listens.
  const address = await until(() => existsSync(join(data, 'address')) && readFileSync(join(data, 'address'), 'utf8').trim());
  const token = execFileSync(headroom, ['compliance', 'token', 'new', 'page', '--data', data], { encoding: 'utf8' }).trim();
  return {
    url: `${address}/`,
    token,
    /** Agents of which some report errors and some what does not comply. */
    agents: (count) =>
      run('agent', '--server', address, '--data', join(folder, 'fleet'), '--count', String(count), '--interval', '2s', '--errors', '30%', '--non-compliant', '30%', '--seed', '7'),
    stopServer: () => end(server),
    async stop() {
      await Promise.all(started.map(end));
      rmSync(folder, { recursive: true });
    },
  };
}

async function until(test) {
  const end = Date.now() + WITHIN_MS;
  while (Date.now() < end) {
    const found = test();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`not within ${WITHIN_MS / 1000} s: ${test}`);
}
