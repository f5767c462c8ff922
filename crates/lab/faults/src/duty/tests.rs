use proptest::prelude::*;

use super::*;

/// Runs a cycle whose every switch comes so much late; gives the share of the time for which
/// they ran, and the longest time for which they stood still.
fn simulated(share: f64, late: impl Fn(usize) -> Duration, turns: usize) -> (f64, Duration) {
    let mut cycle = DutyCycle::new(share);
    let mut now = Duration::ZERO;
    let mut longest = Duration::ZERO;
    for turn in 0..turns {
        let switch = cycle.switch(now);
        let next = switch.until + late(turn);
        if !switch.run {
            longest = longest.max(next - now);
        }
        now = next;
    }
    cycle.switch(now);
    let (ran, of) = cycle.ran();
    (ran.as_secs_f64() / of.as_secs_f64(), longest)
}

#[test]
fn a_fifth_of_the_time_is_4_ms_of_every_20() {
    let mut cycle = DutyCycle::new(0.2);
    let mut switches = Vec::new();
    let mut now = Duration::ZERO;
    for _ in 0..4 {
        let switch = cycle.switch(now);
        let ms = (switch.until - now).as_secs_f64() * 1e3;
        switches.push((switch.run, ms.round() as u64));
        now = switch.until;
    }
    assert_eq!(switches, [(false, 16), (true, 4), (false, 16), (true, 4)]);
}

#[test]
fn a_small_share_has_longer_turns_so_that_timers_can_keep_it() {
    let mut cycle = DutyCycle::new(0.01);
    let still = cycle.switch(Duration::ZERO);
    assert_eq!((still.run, still.until.as_millis()), (false, 99));
    let run = cycle.switch(still.until);
    assert_eq!((run.until - still.until).as_secs_f64(), 0.001);
}

#[test]
fn a_laboratory_that_stood_still_itself_does_not_stop_them_for_as_long() {
    // The first time that they run lasts ten seconds.
    let late = |turn: usize| Duration::from_secs(if turn == 1 { 10 } else { 0 });
    let (_, longest) = simulated(0.05, late, 50);
    assert!(longest <= Duration::from_millis(100), "{longest:?}");
}

proptest! {
    #[test]
    fn late_switches_are_made_up_for(
        share in 0.01..0.99_f64,
        late_us in prop::collection::vec(0..900_u64, 1..50),
    ) {
        let late = |turn: usize| Duration::from_micros(late_us[turn % late_us.len()]);
        let (found, _) = simulated(share, late, 1_000);
        prop_assert!((found - share).abs() < 0.01, "{found} instead of {share}");
    }

    #[test]
    fn every_switch_lasts_and_ends(
        share in 0.01..0.99_f64, looks in prop::collection::vec(0..500_000_u64, 1..100),
    ) {
        // Looked at whenever it may be, also early.
        let mut cycle = DutyCycle::new(share);
        let mut now = Duration::ZERO;
        for look in looks {
            now += Duration::from_micros(look);
            let switch = cycle.switch(now);
            prop_assert!(switch.until > now, "{switch:?} at {now:?}");
            prop_assert!(switch.until - now <= Duration::from_millis(600), "{switch:?} at {now:?}");
        }
    }
}
