/** The part of Svelte that becomes part of the page. */
const CLIENT = /\/svelte\/src\/internal\/client\//;

/** In which file what is replaced by what; each must be there. */
const FIXED = [
  // Nobody renders these pages before, so nothing that is there has to be taken over.
  [/dom\/hydration\.js$/, 'export let hydrating = false;', 'export const hydrating = false;'],
  [/dom\/hydration\.js$/, 'hydrating = value;', ''],
];

/** Questions to which there is one answer, as every component has runes and none waits for something. */
const ANSWERS = [
  [/(?<!function )\bis_runes\(\)/g, 'true'],
  [/(?<!function )\bshould_defer_append\(\)/g, 'false'],
];

/** Has the bundler see what of Svelte these pages never use, so that it leaves that out: a thirtieth of the script. */
export function fresh() {
  return {
    name: 'fresh',
    transform(code, id) {
      if (!CLIENT.test(id)) return null;
      let own = code;
      for (const [file, from, to] of FIXED) {
        if (!file.test(id)) continue;
        if (!own.includes(from)) throw new Error(`fresh: ${id} has no ${JSON.stringify(from)}`);
        own = own.replace(from, to);
      }
      for (const [question, answer] of ANSWERS) own = own.replaceAll(question, answer);
      return own === code ? null : { code: own, map: null };
    },
  };
}
