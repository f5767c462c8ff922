/** How each number is made: at the end of the page, and where the pointer rests on a number's name. */
export const HOW = {
  Percentiles: 'nearest rank: the value at place ⌈q × n⌉ of the sorted durations; nothing is interpolated.',
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
  Lines: 'at most 2,000 points each; every peak and every trough is kept.',
  Zoom: 'the phase table then covers the entities in sight.',
};
