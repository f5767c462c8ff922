//! `headroom calibrate`: what this machine can tell apart.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use lab_generator::calibrate;
use lab_load::summary::Floor;
use lab_store::Outcome;
use units::{show_seconds, show_share};

use crate::cli::CalibrateArgs;
use crate::output::{eprint, json, print};

const FULL: Duration = Duration::from_secs(10);
const QUICK: Duration = Duration::from_secs(2);

pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<Outcome> {
    let length = if args.quick { QUICK } else { FULL };
    if std::io::stderr().is_terminal() {
        let length = show_seconds(length.as_secs_f64());
        eprint(format_args!(
            "headroom: measuring this machine for {length}"
        ));
    }
    let floor = calibrate::measure(length)?;
    // What was measured is shown even if it cannot be kept.
    let kept = calibrate::keep(&floor);
    print(&match args.json {
        true => json(&floor)?,
        false => words(&floor),
    })?;
    let path = kept?;
    if !args.json {
        print(&format!(
            "Kept in {}; reports of load show it.\n",
            path.display()
        ))?;
    }
    Ok(Outcome::Pass)
}

/// The floor as people read it.
fn words(floor: &Floor) -> String {
    let seconds = show_seconds;
    let mut text = format!(
        "\
Latencies below {floor_p50} are this machine, not your target.

  ping-pong over loopback   median {floor_p50}, p99 {floor_p99}; spinning {spin}
  timers                    end {timer_p50} late, p99 {timer_p99}
  gaps                      longest {gap}; {share} of the time in gaps above 100 µs
  steal                     {steal} of the time was taken by the hypervisor
  clock                     {clock} for one reading
",
        floor_p50 = seconds(floor.ping_pong_p50),
        floor_p99 = seconds(floor.ping_pong_p99),
        spin = seconds(floor.ping_pong_spin_p50),
        timer_p50 = seconds(floor.timer_p50),
        timer_p99 = seconds(floor.timer_p99),
        gap = seconds(floor.longest_gap),
        share = show_share(floor.gap_share),
        steal = show_share(floor.steal),
        clock = seconds(floor.clock),
    );
    let notes = notes(floor);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text
}

/// What to make of it, where there is something to say.
fn notes(floor: &Floor) -> Vec<String> {
    let mut notes = Vec::new();
    // Spinning pays where the sleeper's own wake-up is a good part of the floor.
    if floor.ping_pong_spin_p50 < 0.75 * floor.ping_pong_p50 {
        notes.push(format!(
            "With --spin the floor of `headroom load` is {} instead; it costs a processor per thread.",
            show_seconds(floor.ping_pong_spin_p50)
        ));
    }
    if floor.longest_gap > 0.001 {
        notes.push(format!(
            "A single latency of up to {} may be a pause of this machine: do not read much into the largest.",
            show_seconds(floor.longest_gap)
        ));
    }
    if floor.gap_share > 0.01 || floor.steal > 0.02 {
        notes.push(
            "This machine is busy or shared: other work takes processor time away. Measure when it is quiet, or elsewhere."
                .into(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Floor {
        Floor {
            measured_unix_ns: 0,
            ping_pong_p50: 0.000_06,
            ping_pong_p99: 0.000_11,
            ping_pong_spin_p50: 0.000_058,
            timer_p50: 0.000_009,
            timer_p99: 0.000_05,
            longest_gap: 0.000_4,
            gap_share: 0.001,
            steal: 0.0,
            clock: 0.000_000_021,
        }
    }

    #[test]
    fn a_quiet_machine_is_told_in_one_table() {
        let expected = "\
Latencies below 60 µs are this machine, not your target.

  ping-pong over loopback   median 60 µs, p99 110 µs; spinning 58 µs
  timers                    end 9 µs late, p99 50 µs
  gaps                      longest 400 µs; 0.1 % of the time in gaps above 100 µs
  steal                     0 % of the time was taken by the hypervisor
  clock                     21 ns for one reading
";
        assert_eq!(words(&quiet()), expected);
    }

    #[test]
    fn what_matters_is_said_in_words() {
        let floor = Floor {
            ping_pong_spin_p50: 0.000_03,
            longest_gap: 0.004,
            steal: 0.03,
            ..quiet()
        };
        let notes = notes(&floor);
        assert_eq!(notes.len(), 3);
        assert!(
            notes[0].contains("--spin") && notes[0].contains("30 µs"),
            "{notes:?}"
        );
        assert!(notes[1].contains("4 ms"), "{notes:?}");
        assert!(notes[2].contains("quiet"), "{notes:?}");
    }
}
