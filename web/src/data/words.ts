/** Words of results that the terminal uses too; `crates/lab/report/src/load/words.rs` has them for it, and a test there compares. */

export const VALID = 'VALID';
export const INVALID = 'INVALID';
export const WITHHELD = 'withheld';
export const NO_ANSWER = 'no answer';
export const UNTIL_THEN = 'the numbers are those until then';
export const LOST = 'requests had no answer: they count as slower than every answer, and no mean has them';
export const LATE = 'the generator was late itself, so of';
export const ONLY_KNOWN = 'it is only known:';
