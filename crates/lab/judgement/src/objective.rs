//! Two figures in which teams state what they promise.

/// Apdex (version 1.1): answers within the target count once, tolerated ones (within four times
/// the target) half, all others not at all. From 0 to 1; `None` without an answer, or when the
/// two are more than all.
#[must_use]
pub fn apdex(satisfied: u64, tolerating: u64, all: u64) -> Option<f64> {
    let counted = satisfied.checked_add(tolerating)?;
    (all > 0 && counted <= all).then(|| (satisfied as f64 + tolerating as f64 / 2.0) / all as f64)
}

/// How many times faster than allowed an error budget is spent: the share of bad answers over
/// what the objective (such as 0.999) allows. 1 uses the budget up exactly at the end of its
/// period; 14.4 over an hour and 6 over six hours are what Google's SRE workbook pages for.
/// `None` without an answer, with more bad ones than all, or an objective not between 0 and 1.
#[must_use]
pub fn burn_rate(bad: u64, all: u64, objective: f64) -> Option<f64> {
    let allowed = 1.0 - objective;
    (all > 0 && bad <= all && allowed > 0.0 && allowed < 1.0)
        .then(|| bad as f64 / all as f64 / allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_their_specifications() {
        // 60 satisfied, 30 tolerating, 10 frustrated.
        assert_eq!(apdex(60, 30, 100), Some(0.75));
        assert_eq!(apdex(0, 0, 0), None);
        assert_eq!(apdex(60, 50, 100), None);
        // 1.44 % bad of 99.9 %.
        assert!((burn_rate(144, 10_000, 0.999).unwrap() - 14.4).abs() < 1e-9);
        assert_eq!(burn_rate(0, 10, 0.999), Some(0.0));
        assert_eq!(burn_rate(1, 10, 1.0), None);
        assert_eq!(burn_rate(11, 10, 0.9), None);
    }
}
