//! What would show better what a fault did, where to ask more often would not.

use lab_findings::recovery::{Return, Signal, Window};

use super::{LONG_GAP, Measure, STEADY_S, within};

/// How much longer than chance makes it the longest time between two requests of a load is where
/// some were missing, in times the usual one.
const LONG_WAIT: f64 = 10.0;

impl Measure<'_> {
    /// Of a return whose instant is not known well.
    pub(super) fn remedy(&self, returned: Return, window: &Window) -> Option<&'static str> {
        let Return::After {
            from_begin_s,
            resolution_s,
            ..
        } = returned
        else {
            return None;
        };
        if resolution_s <= STEADY_S / 2.0 {
            return None;
        }
        let back_s = window.fault_begin_s + from_begin_s;
        let looks = self.looks(window, back_s - resolution_s);
        let (gap_s, gaps) = longest_gap(&looks, back_s);
        let is_level = matches!(self.signal, Signal::Samples(_));
        if is_level && resolution_s > self.grain_s.max(LONG_GAP * gap_s) {
            return Some(
                "the return itself was slow or noisy, and more samples would not help: leave room \
                 for that in the bound, or judge something that varies less",
            );
        }
        self.of_gap(gap_s, gaps, window)
    }

    /// Of an effect that was not seen but may have been there.
    pub(super) fn remedy_unseen(&self, window: &Window) -> Option<&'static str> {
        let looks = self.looks(window, window.fault_begin_s);
        let (gap_s, gaps) = longest_gap(&looks, window.until_s);
        self.of_gap(gap_s, gaps, window).or_else(|| {
            let Signal::Requests(requests) = self.signal else {
                return None;
            };
            let before = within(requests, window.hold_begin_s, window.fault_begin_s);
            let failed = before.iter().filter(|(_, good)| !good).count();
            (2 * failed > before.len()).then_some(
                "most of it failed before the fault as well, so that more of the same hardly \
                 shows: mend that first",
            )
        })
    }

    /// Of a time without a look that is longer than usual: the longest of so many.
    fn of_gap(&self, gap_s: f64, gaps: usize, window: &Window) -> Option<&'static str> {
        let is_level = matches!(self.signal, Signal::Samples(_));
        if self.grain_s > 0.0 {
            // A try that ends with its time may lie a whole one before what is asked next.
            let is_long = gap_s > (LONG_GAP + 0.5) * self.grain_s;
            return is_long.then_some(match is_level {
                true => {
                    "tries in between had no answer, and more of them would not help: shorten \
                     `within`, or judge the probe's `ok`, which counts such tries"
                }
                false => "the probe itself was late, so leave it a processor",
            });
        }
        let Signal::Requests(requests) = self.signal else {
            return None;
        };
        let (from_s, to_s) = (window.hold_begin_s, window.fault_begin_s);
        let usual_s = (to_s - from_s) / within(requests, from_s, to_s).len() as f64;
        // Due at random, the longest of N is about ln N times the usual one.
        let by_chance = (gaps.max(1) as f64).ln();
        (gap_s > (by_chance + LONG_WAIT) * usual_s).then_some(
            "far fewer requests were sent then than before; if users waited for answers, shorten \
             the load's `timeout`, or give it a rate",
        )
    }
}

/// The longest time between two looks, of which the first was before an instant, and of how many.
fn longest_gap(looks: &[f64], instant_s: f64) -> (f64, usize) {
    let gaps = looks.windows(2).take_while(|pair| pair[0] < instant_s);
    let gaps = gaps.map(|pair| pair[1] - pair[0]);
    gaps.fold((0.0_f64, 0_usize), |(longest_s, count), gap_s| {
        (longest_s.max(gap_s), count + 1)
    })
}
