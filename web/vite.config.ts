import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { onePage } from './one-page.js';

/** A running graph that `npm run dev` shows at /graph.html. */
const GRAPH = process.env.GRAPH ?? 'http://127.0.0.1:8090';

/** Pages beside the report, each the name of its mode. */
const OTHERS = ['graph', 'compliance'];

/** Each page is a build of its own, so that none waits for a part that it shares. */
export default defineConfig(({ mode }) => {
  const page = OTHERS.includes(mode) ? `${mode}.html` : 'page.html';
  return {
    plugins: [svelte(), onePage(page)],
    server: {
      proxy: Object.fromEntries(['/topology', '/stats', '/traces', '/analysis'].map((path) => [path, GRAPH])),
    },
    build: {
      target: 'es2022',
      modulePreload: false,
      assetsInlineLimit: 0,
      emptyOutDir: !OTHERS.includes(mode),
      rollupOptions: { input: page, optimization: { inlineConst: { mode: 'all', pass: 3 } } },
    },
  };
});
