import { gzipSync } from 'node:zlib';

/** Most bytes of script, compressed: a report is sent by mail and opened on telephones. */
const SCRIPT_MOST = 60_000;

/**
 * Puts the script and the style into the page, so that it is one file.
 *
 * The replacements are functions: in a text, `$&` and the like would be expanded.
 */
export function onePage() {
  return {
    name: 'one-page',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const page = bundle['page.html'];
      if (!page) throw new Error('one-page: page.html is not in the bundle');
      let html = String(page.source);
      for (const [file, part] of Object.entries(bundle)) {
        if (file === 'page.html') continue;
        const before = html;
        if (part.type === 'chunk') {
          const size = gzipSync(part.code, { level: 9 }).length;
          if (size > SCRIPT_MOST) throw new Error(`one-page: the script has ${size} bytes compressed, ${SCRIPT_MOST} at most`);
          const code = part.code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
          html = html.replace(reference('script', file), '');
          // Last in the body: the data above it is then there.
          html = html.replace('</body>', () => `<script type="module">${code}</script>\n</body>`);
        } else if (file.endsWith('.css')) {
          html = html.replace(reference('link', file), () => `<style>${part.source}</style>`);
        }
        if (html === before) throw new Error(`one-page: nothing refers to ${file}`);
        delete bundle[file];
      }
      page.source = html;
    },
  };
}

/** The element that loads `file`. */
function reference(element, file) {
  const name = file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const end = element === 'script' ? '></script>' : '>';
  return new RegExp(`<${element}\\b[^>]*"[^"]*${name}"[^>]*${end}`);
}
