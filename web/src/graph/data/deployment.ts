/** What is known of a deployment, whose keys depend on how it was started. Pure. */

/** Most facts that are shown; the rest is in the server's answer. */
const MOST = 80;

/** The part of a tree at some keys, if there is one. */
function at(tree: unknown, ...keys: string[]): unknown {
  return keys.reduce<unknown>((tree, key) => (typeof tree === 'object' && tree !== null ? (tree as Record<string, unknown>)[key] : undefined), tree);
}

/** Why the last profile was not taken, if it was not. */
export function refusal(deployment: unknown): string | null {
  const refused = at(deployment, 'profile', 'refused');
  if (refused === undefined || refused === null || refused === '') return null;
  return typeof refused === 'string' ? refused : JSON.stringify(refused, null, 2);
}

/** What could not be done as the file says. */
export function warnings(deployment: unknown): string[] {
  const found = at(deployment, 'warnings');
  return Array.isArray(found) ? found.map(String) : [];
}

/** Every value of a tree with the way to it: `machine · cores`, `2`. */
export function facts(deployment: unknown): [string, string][] {
  const found: [string, string][] = [];
  const visit = (tree: unknown, way: string[]): void => {
    if (tree === null || tree === undefined || tree === '' || found.length >= MOST) return;
    if (Array.isArray(tree) && tree.every((one) => typeof one !== 'object')) {
      if (tree.length > 0) found.push([way.join(' · '), tree.join(', ')]);
    } else if (typeof tree === 'object') {
      for (const [key, value] of Object.entries(tree)) visit(value, [...way, Array.isArray(tree) ? String(Number(key) + 1) : key.replaceAll('_', ' ')]);
    } else {
      found.push([way.join(' · '), String(tree)]);
    }
  };
  const { warnings: _, profile, ...rest } = (typeof deployment === 'object' && deployment !== null ? deployment : {}) as Record<string, unknown>;
  visit(rest, []);
  visit(at(profile, 'file'), ['profile']);
  return found;
}
