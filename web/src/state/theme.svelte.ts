/** Light or dark: as the system says, until someone says otherwise, which the browser keeps. */

import type { Theme } from '../chart/palette';
import { keep, kept } from './kept';

/** The name of the choice, which all pages share. */
const KEPT_AS = 'headroom.theme';

const system = matchMedia('(prefers-color-scheme: dark)');

function themeOf(text: string | null): Theme | null {
  return text === 'dark' || text === 'light' ? text : null;
}

class ThemeChoice {
  private system = $state<Theme>(system.matches ? 'dark' : 'light');
  private chosen = $state<Theme | null>(themeOf(kept(() => localStorage, KEPT_AS)));
  private printing = $state(false);

  constructor() {
    system.addEventListener('change', (event) => {
      this.system = event.matches ? 'dark' : 'light';
      this.apply();
    });
    // Paper is white.
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
    this.apply();
  }

  get now(): Theme {
    return this.printing ? 'light' : (this.chosen ?? this.system);
  }

  toggle(): void {
    this.chosen = this.now === 'dark' ? 'light' : 'dark';
    keep(() => localStorage, KEPT_AS, this.chosen);
    this.apply();
  }

  private print(on: boolean): void {
    this.printing = on;
    this.apply();
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.now;
  }
}

export const theme = new ThemeChoice();
