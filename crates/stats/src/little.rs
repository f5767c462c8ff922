//! Little's law as a check of whoever measures.

/// How far apart two views of the same thing are: the mean number of requests in
/// flight as it was seen, and as Little's law has it, `X·R` (Little, "A proof for the
/// queuing formula L = λW", 1961). `|L - X·R|` over the larger of the two; 0 when both
/// are 0. The law is about averages over a time that is long against `R`, with as many
/// requests coming as going.
///
/// `None` when a number is negative or not finite.
pub fn little_gap(in_flight: f64, rate: f64, residence: f64) -> Option<f64> {
    let fine = |value: f64| value.is_finite() && value >= 0.0;
    if !fine(in_flight) || !fine(rate) || !fine(residence) {
        return None;
    }
    let expected = rate * residence;
    let larger = in_flight.max(expected);
    Some(if larger > 0.0 {
        (in_flight - expected).abs() / larger
    } else {
        0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_a_share_of_the_larger() {
        assert_eq!(little_gap(5.0, 1000.0, 0.005), Some(0.0));
        assert_eq!(little_gap(4.0, 1000.0, 0.005), Some(0.2));
        assert_eq!(little_gap(5.0, 1000.0, 0.004), Some(0.2));
        assert_eq!(little_gap(0.0, 0.0, 1.0), Some(0.0));
        assert_eq!(little_gap(f64::NAN, 1.0, 1.0), None);
        assert_eq!(little_gap(1.0, -1.0, 1.0), None);
    }
}
