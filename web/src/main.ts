import { mount } from 'svelte';
import './page.css';
import App from './ui/App.svelte';
import Broken from './ui/Broken.svelte';
import { inflate } from './data/decode';
import { outcome, type Run } from './data/run';

/** The version of the data that this page reads. */
const VERSION = 1;

// `npm run paint` measures from here to the first lifecycle chart.
performance.mark('start');

const target = document.getElementById('app')!;

try {
  const run = JSON.parse(embedded('run')) as Run;
  if (run.version !== VERSION) throw new Error(`data of version ${run.version}, not ${VERSION}`);
  const blob = await inflate(embedded('columns'));
  document.title = `${run.name} · ${outcome(run)} · Headroom`;
  mount(App, { target, props: { run, blob } });
} catch (error) {
  mount(Broken, { target, props: { error: String(error) } });
  throw error;
}

function embedded(id: string): string {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the part #${id} is missing`);
  return element.textContent ?? '';
}
