/** How each number is made: at the end of the page, and where the pointer rests on a number's name. */

/** In every report. */
export const GENERAL = {
  Percentiles: 'nearest rank: the value at place ⌈q × n⌉ of the sorted durations; nothing is interpolated.',
  Lines: 'at most 2,000 points each; every peak and every trough is kept.',
};

/** Of loads. */
export const LOADS = {
  'Intended send': 'when the schedule had a request due. Latency from there is what a user feels, also while the target stalls.',
  'Actual send': 'when the request was handed to the kernel. Latency from there is what the target took.',
  'Steady part': 'found by MSER-5: what is left when the start whose removal makes the mean of the rest most certain is taken away. It is told beside the numbers, which are of the whole load.',
  'Percentiles of a load': 'of all requests: those without an answer count as slower than every answer.',
  Failed: 'refused, without a whole answer, or due and never sent; as a share of all that were tried.',
  Rates: 'within the time in which requests were due. Answers that came later count, but into no rate.',
  Heat: 'ten bins for each factor of ten, darker with the logarithm of answers a second; of slots that share a pixel the densest counts.',
  Knee: 'probabilistic bisection: the rate at which the objective stops to hold, with the interval that holds it with the probability shown.',
  Valid: 'the generator was not the limit: what it may have added to latencies changes no conclusion, nothing was stolen, Little’s law holds.',
};

/** Of lifecycles. */
export const HOW = {
  'Share of time': 'sum of the phase over the sum of all phases, over complete entities.',
  'Share of variance':
    'how much of the difference between entities comes from the phase: cov(phase, total) ÷ var(total), over complete entities. ' +
    'The shares add up to 100 %. One below zero: the phase is short where the total is long, and evens out; others may then exceed 100 %.',
  'Most at a time': 'entities between the two points of a phase at one moment, counted exactly.',
  'Slowest group': 'the group whose median is highest, and how many times the median of all it is; groups of fewer than 5 are left out.',
  'Clock skew':
    'phases that end before they start: clocks disagree, or the log has the points in another order. They are counted and kept, not dropped.',
  Complete: 'entities that show every point.',
  Distributions: 'the axis holds the 1st to the 99.9th percentile of all phases; what is beyond it counts in the outermost bins.',
  Rows: 'where entities share a pixel, any entity beats the background, then the phase of most of them wins, and an interval over twice the 99th percentile of its phase always shows.',
  Zoom: 'the phase table then covers the entities in sight.',
};
