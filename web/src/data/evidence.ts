/** The numbers of a finding, as they are read. */

/** `level 20`, `usual latency 5.2 ms`: names end with their unit where they have one. */
export function evidence(numbers: Record<string, number>): string[] {
  return Object.entries(numbers).map(([name, value]) => {
    const seconds = /_s$/.test(name) && !/_per_s$/.test(name);
    const words = name.replace(/_per_s$/, ' per second').replace(/_s$/, '').replaceAll('_', ' ');
    const digits = Number.isInteger(value) ? value : Number(value.toPrecision(3));
    return `${words} ${digits.toLocaleString('en', { maximumSignificantDigits: 15 })}${seconds ? ' s' : ''}`;
  });
}
