/** Light or dark: as the system says, until someone says otherwise. */

import type { Theme } from '../chart/palette';

const system = matchMedia('(prefers-color-scheme: dark)');

class ThemeChoice {
  private system = $state<Theme>(system.matches ? 'dark' : 'light');
  private chosen = $state<Theme | null>(null);
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
