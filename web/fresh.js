const FILE = /svelte\/src\/internal\/client\/dom\/hydration\.js$/;

/** What is replaced by what, each of which must be there once. */
const FIXED = [
  ['export let hydrating = false;', 'export const hydrating = false;'],
  ['hydrating = value;', ''],
];

/**
 * Leaves out of the page what Svelte has for taking over elements that a server rendered: nobody renders these
 * pages before, and it is a tenth of the script.
 */
export function fresh() {
  return {
    name: 'fresh',
    transform(code, id) {
      if (!FILE.test(id)) return null;
      let own = code;
      for (const [from, to] of FIXED) {
        if (own.split(from).length !== 2) throw new Error(`fresh: ${id} has not one ${JSON.stringify(from)}`);
        own = own.replace(from, to);
      }
      return { code: own, map: null };
    },
  };
}
