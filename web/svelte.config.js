import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Names that cost little in a page that is one file: nobody reads them.
    cssHash: ({ hash, css }) => `s${hash(css).slice(0, 3)}`,
    discloseVersion: false,
  },
};
