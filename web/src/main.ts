import { mount } from 'svelte';
import './page.css';
import App from './ui/App.svelte';
import Broken from './ui/Broken.svelte';
import Watched from './ui/Watched.svelte';
import { unpacked } from './data/decode';
import { newer, send } from './data/newer';
import { outcome, read } from './data/run';
import { LiveRun } from './state/live.svelte';

// `npm run paint` measures from here to the first lifecycle chart.
performance.mark('start');

const target = document.getElementById('app')!;

try {
  const run = read(JSON.parse(embedded('run')));
  const blob = await unpacked(embedded('columns'));
  document.title = `${run.name} · ${outcome(run)} · Headroom`;
  if (run.underway) {
    const { search } = location;
    const live = new LiveRun(
      run,
      blob,
      (tag) => newer(tag, search),
      (act, body) => send(act, body, search),
    );
    mount(Watched, { target, props: { live } });
  } else {
    mount(App, { target, props: { run, blob } });
  }
} catch (error) {
  mount(Broken, { target, props: { error: String(error) } });
  throw error;
}

function embedded(id: string): string {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the part #${id} is missing`);
  return element.textContent ?? '';
}
