use proptest::prelude::*;

use super::*;

const S: Duration = Duration::from_secs(1);

#[test]
fn fixed_gaps_are_counted_from_the_end_of_a_turn() {
    let found = turns(Gaps::Fixed(10 * S), 5 * S, 2 * S..50 * S, 1, "flap").unwrap();
    assert_eq!(found, [12 * S..17 * S, 27 * S..32 * S, 42 * S..47 * S]);
}

#[test]
fn a_turn_that_the_window_cuts_ends_with_it() {
    let found = turns(
        Gaps::Fixed(10 * S),
        5 * S,
        Duration::ZERO..12 * S,
        1,
        "flap",
    )
    .unwrap();
    assert_eq!(found, [10 * S..12 * S]);
    let none = turns(
        Gaps::Fixed(10 * S),
        5 * S,
        Duration::ZERO..10 * S,
        1,
        "flap",
    )
    .unwrap();
    assert_eq!(none, []);
}

#[test]
fn what_would_not_end_is_refused() {
    let refused =
        |gaps, length| turns(gaps, length, Duration::ZERO..3600 * S, 1, "flap").unwrap_err();
    let none = refused(Gaps::Fixed(Duration::ZERO), S);
    assert_eq!(
        none,
        RecurError::NoGap {
            fault: "flap".into()
        }
    );
    let many = refused(Gaps::Exponential(Duration::from_micros(1)), Duration::ZERO);
    assert!(
        matches!(
            many,
            RecurError::TooMany {
                turns: 3_600_000_000,
                ..
            }
        ),
        "{many}"
    );
    // Few enough to be drawn, yet too many.
    let many = refused(Gaps::Fixed(Duration::from_millis(30)), Duration::ZERO);
    assert!(
        matches!(many, RecurError::TooMany { turns: 120_000, .. }),
        "{many}"
    );
}

#[test]
fn exponential_gaps_have_the_mean_and_the_deviation_that_were_asked_for() {
    let found = turns(
        Gaps::Exponential(S),
        S,
        Duration::ZERO..40_000 * S,
        9,
        "flap",
    )
    .unwrap();
    let ends = [Duration::ZERO]
        .into_iter()
        .chain(found.iter().map(|turn| turn.end));
    let gaps: Vec<f64> = found
        .iter()
        .zip(ends)
        .map(|(turn, end)| (turn.start - end).as_secs_f64())
        .collect();
    assert!(gaps.len() > 19_000);
    let mean = stats::mean(&gaps).unwrap();
    let variance = stats::variance(&gaps).unwrap();
    assert!(
        (mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1,
        "{mean} {variance}"
    );
}

proptest! {
    #[test]
    fn turns_follow_each_other_inside_the_window(
        seed: u64, gap in 1..2_000_u64, length in 0..2_000_u64, start in 0..1_000_u64, span in 0..20_000_u64,
        fixed: bool,
    ) {
        let ms = Duration::from_millis;
        let gaps = if fixed { Gaps::Fixed(ms(gap)) } else { Gaps::Exponential(ms(gap)) };
        let window = ms(start)..ms(start + span);
        let found = turns(gaps, ms(length), window.clone(), seed, "flap").unwrap();
        prop_assert_eq!(&found, &turns(gaps, ms(length), window.clone(), seed, "flap").unwrap());
        let mut before = window.start;
        for turn in &found {
            prop_assert!(turn.start > before && turn.start < window.end);
            prop_assert_eq!(turn.end, (turn.start + ms(length)).min(window.end));
            before = turn.end;
        }
        // A longer window changes nothing of what came before its end.
        let longer = turns(gaps, ms(length), window.start..window.end + ms(5_000), seed, "flap").unwrap();
        for (short, long) in found.iter().zip(&longer) {
            prop_assert_eq!(short.start, long.start);
        }
    }
}
