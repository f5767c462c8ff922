//! What would show better what a fault did, where to ask more often would not.

use lab_findings::recovery::{Return, Signal, Window};

use super::{LONG_GAP, Measure, STEADY_S, within};

/// After so many times the usual time between two requests of a load, which may be due at random,
/// some were missing.
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
        let gap_s = longest_gap_s(&looks, back_s);
        let is_level = matches!(self.signal, Signal::Samples(_));
        if is_level && resolution_s > self.grain_s.max(LONG_GAP * gap_s) {
            return Some(
                "the return itself was slow or noisy, and more samples would not help: leave room \
                 for that in the bound, or judge something that varies less",
            );
        }
        self.of_gap(gap_s, window)
    }

    /// Of an effect that was not seen but may have been there.
    pub(super) fn remedy_unseen(&self, window: &Window) -> Option<&'static str> {
        let looks = self.looks(window, window.fault_begin_s);
        let gap_s = longest_gap_s(&looks, window.until_s);
        self.of_gap(gap_s, window).or_else(|| {
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

    /// Of a time without a look that is longer than usual.
    fn of_gap(&self, gap_s: f64, window: &Window) -> Option<&'static str> {
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
        (gap_s > LONG_WAIT * usual_s).then_some(
            "far fewer requests were sent then than before; if users waited for answers, shorten \
             the load's `timeout`, or give it a rate",
        )
    }
}

/// The longest time between two looks, of which the first was before an instant.
fn longest_gap_s(looks: &[f64], instant_s: f64) -> f64 {
    let gaps = looks.windows(2).take_while(|pair| pair[0] < instant_s);
    gaps.map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}
