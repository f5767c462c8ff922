import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { onePage } from './one-page.js';

export default defineConfig({
  plugins: [svelte(), onePage()],
  build: {
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: { input: 'page.html' },
  },
});
