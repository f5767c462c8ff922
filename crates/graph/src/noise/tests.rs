use super::*;

fn noise() -> Noise {
    let gaps = |cpu| Gaps {
        cpu: Some(cpu),
        seen_ns: 1_000_000_000,
        lost_ns: 50_000_000,
        longest_ns: 14_600_000,
        sizes: [0, 390, 0, 0, 0, 8, 0, 2, 0],
    };
    Noise {
        measured_unix_s: 0,
        gaps: vec![gaps(0), gaps(1)],
        lateness: vec![Lateness {
            length_ns: 1_000_000,
            count: 900,
            p50_ns: 27_000,
            p99_ns: 69_000,
            max_ns: 3_500_000,
        }],
        steal: 0.0,
        facts: Facts {
            kernel: "Linux 6.18".into(),
            cpu_model: "A model".into(),
            cpus: 2,
            affinity: Some("0-1".into()),
            clocksource: Some("tsc".into()),
            ..Facts::default()
        },
    }
}

#[test]
fn the_budget_of_a_request_follows_from_the_gaps() {
    let noise = noise();
    // 5 % of the time is lost: work of 95 ms goes on for 100.
    assert_eq!(noise.lost_in(95_000_000), 5_000_000);
    // Ten gaps of a millisecond and more in a second: 1 - e^-0.1 for 10 ms.
    let chance = noise.chance_of_gap(10_000_000, 1_000_000);
    assert!((chance - 0.095_16).abs() < 1e-4, "{chance}");
    assert_eq!(noise.chance_of_gap(0, 1_000_000), 0.0);
}

#[test]
fn it_is_told_in_one_table() {
    let expected = "\
Work of 10 ms loses 526 µs to gaps in the mean, and meets one of 1 ms or more in 9.52 % of all cases.

  gaps on CPU 0      longest 14.6 ms; 5 % of the time in 400 gaps a second above 10 µs
                     < 50 µs: 390, < 5 ms: 8, < 50 ms: 2
  gaps on CPU 1      longest 14.6 ms; 5 % of the time in 400 gaps a second above 10 µs
                     < 50 µs: 390, < 5 ms: 8, < 50 ms: 2
  sleeps of 1 ms     end 27 µs late, p99 69 µs, longest 3.5 ms
  steal              0 % of the time was taken by the hypervisor
  machine            Linux 6.18, A model, 2 usable CPUs (0-1), clock tsc

Gaps take 5 % of the time: other work runs here, or the kernel's ticks are expensive. Measure when it is quiet.
";
    assert_eq!(noise().to_string(), expected);
}

#[test]
fn this_machine_has_a_floor() {
    let noise = Noise::measure(Duration::ZERO).unwrap();
    assert!(!noise.gaps.is_empty());
    for gaps in &noise.gaps {
        assert!(gaps.seen_ns >= 100_000_000, "{gaps:?}");
        assert!(gaps.lost_ns <= gaps.seen_ns, "{gaps:?}");
    }
    for late in &noise.lateness {
        assert!(late.count > 0 && late.p50_ns <= late.p99_ns && late.p99_ns <= late.max_ns);
    }
    let json = serde_json::to_string(&noise).unwrap();
    let again: Noise = serde_json::from_str(&json).unwrap();
    assert_eq!(again, noise);
}
