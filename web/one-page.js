import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

/** Most bytes of script, compressed: a report is sent by mail and opened on telephones. */
const SCRIPT_MOST = 75_000;

/**
 * Puts the script and the style into the page, so that it is one file; and beside it the
 * security policy that lets exactly this script and this style in.
 *
 * The replacements are functions: in a text, `$&` and the like would be expanded.
 */
export function onePage(file) {
  return {
    name: 'one-page',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const page = bundle[file];
      if (!page) throw new Error(`one-page: ${file} is not in the bundle`);
      let html = String(page.source);
      const allowed = { script: [], style: [] };
      for (const [name, part] of Object.entries(bundle)) {
        if (name === file) continue;
        const before = html;
        if (part.type === 'chunk') {
          const size = gzipSync(part.code, { level: 9 }).length;
          if (size > SCRIPT_MOST) throw new Error(`one-page: the script has ${size} bytes compressed, ${SCRIPT_MOST} at most`);
          const code = part.code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
          allowed.script.push(hash(code));
          html = html.replace(reference('script', name), '');
          // Last in the body: the data above it is then there.
          html = html.replace('</body>', () => `<script type="module">${code}</script>\n</body>`);
        } else if (name.endsWith('.css')) {
          allowed.style.push(hash(part.source));
          html = html.replace(reference('link', name), () => `<style>${part.source}</style>`);
        }
        if (html === before) throw new Error(`one-page: nothing refers to ${name}`);
        delete bundle[name];
      }
      page.source = html;
      // A page without a policy of its own is served by a program, which sends this one.
      if (html.includes('Content-Security-Policy')) return;
      this.emitFile({ type: 'asset', fileName: file.replace('.html', '.policy'), source: policy(allowed) });
    },
  };
}

/** What a browser may do with the page: run and style it, and ask its own server. */
function policy({ script, style }) {
  return [
    "default-src 'none'",
    `script-src ${script.join(' ')}`,
    `style-src ${style.join(' ')}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function hash(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The element that loads `file`. */
function reference(element, file) {
  const name = file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const end = element === 'script' ? '></script>' : '>';
  return new RegExp(`<${element}\\b[^>]*"[^"]*${name}"[^>]*${end}`);
}
