/** What a reader chose, kept by the browser. One that keeps nothing, as for pages in a sandbox, refuses by an exception. */

export type Where = () => Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** What was kept under a name; null: nothing. */
export function kept(where: Where, name: string): string | null {
  try {
    return where().getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text, or forgets the one before. */
export function keep(where: Where, name: string, text: string | null): void {
  try {
    if (text === null) where().removeItem(name);
    else where().setItem(name, text);
  } catch {
    // The choice holds until the page is left.
  }
}
