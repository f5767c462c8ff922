use proptest::prelude::*;

use super::*;

fn message<T: std::fmt::Debug>(result: Result<T, UnitError>) -> String {
    let error = result.unwrap_err();
    match error.suggestion {
        Some(meant) => format!("{} [{meant}]", error.message),
        None => error.message,
    }
}

#[test]
fn durations() {
    let cases = [
        ("0", 0),
        ("7ns", 7),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("1.5s", 1_500_000_000),
        ("1m30s", 90_000_000_000),
        ("1h0.5s", 3_600_500_000_000),
        ("1_000ms", 1_000_000_000),
        ("0s", 0),
    ];
    for (text, nanos) in cases {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_nanos(nanos)),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_duration() {
    assert_eq!(
        message(parse_duration("30")),
        "a length of time needs a unit: ns, us, ms, s, m or h [30s]"
    );
    assert_eq!(
        message(parse_duration("30sec")),
        "unknown unit of time \"sec\"; units are ns, us, ms, s, m, h [s]"
    );
    for text in [
        "",
        "s",
        "-1s",
        "1s1m",
        "1.5m1s",
        "1s 1s",
        "1s1s",
        "99999999h",
        "1__0s",
        "1.s",
    ] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn sizes() {
    let cases = [
        ("0", 0),
        ("0B", 0),
        ("64KiB", 65_536),
        ("1.5GiB", 1_610_612_736),
        ("10MB", 10_000_000),
        ("1kB", 1000),
    ];
    for (text, bytes) in cases {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
    assert_eq!(
        message(parse_bytes("12G")),
        "unknown unit of size \"G\"; units are B, KiB, MiB, GiB, TiB, kB, MB, GB, TB [GiB]"
    );
    for text in ["", "12", "0.5B", "99999999999TiB", "1GiB1B", "GiB"] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
}

#[test]
fn rates_shares_and_counts() {
    assert_eq!(parse_rate("500/s"), Ok(500.0));
    assert_eq!(parse_rate("30/m"), Ok(0.5));
    assert_eq!(parse_rate("500"), Ok(500.0));
    assert_eq!(
        message(parse_rate("500rps")),
        "expected a rate such as 500/s, found \"500rps\""
    );
    assert!(parse_rate("500/d").is_err());
    for (text, meant) in [("500/sec", "[/s]"), ("30/min", "[/m]"), ("1/hour", "[/h]")] {
        assert!(message(parse_rate(text)).ends_with(meant), "{text}");
    }
    assert_eq!(parse_share("99.9%"), Ok(0.999));
    assert_eq!(parse_share("0.25"), Ok(0.25));
    assert_eq!(
        message(parse_share("10")),
        "a share is at most 100% or 1, found 10 [10%]"
    );
    assert!(parse_share("101%").is_err());
    assert_eq!(parse_count("4_000"), Ok(4000));
    assert!(parse_count("1.5").is_err());
    assert!(parse_count("18446744073709551616").is_err());
}

#[test]
fn distributions() {
    for text in [
        "0",
        "50ms",
        "uniform 10ms 90ms",
        "exponential 50ms",
        "lognormal 900ms p99=4s",
        "5s +- 20%",
        "5s ± 20%",
    ] {
        assert_eq!(check_distribution(text), Ok(()), "{text}");
    }
    let error = check_distribution("lognormal 900ms p99=4x").unwrap_err();
    assert_eq!(&"lognormal 900ms p99=4x"[error.at], "x");
    let error = check_distribution("unifrom 1s 2s").unwrap_err();
    assert_eq!(error.suggestion.as_deref(), Some("uniform"));
    for text in [
        "",
        "uniform 9s 1s",
        "uniform 1s",
        "lognormal 4s p99=1s",
        "5s +- 120%",
        "x",
    ] {
        assert!(check_distribution(text).is_err(), "{text}");
    }
}

#[test]
fn people_read_three_digits() {
    let seconds = [
        (0.0, "0 s"),
        (1.2749, "1.27 s"),
        (0.045, "45 ms"),
        (0.99996, "1 s"),
        (0.9994, "999 ms"),
        (2.5e-7, "250 ns"),
        (90.0, "90 s"),
        (1230.0, "20.5 min"),
        (9000.0, "2.5 h"),
        (-0.003, "-3 ms"),
    ];
    for (value, text) in seconds {
        assert_eq!(show_seconds(value), text);
    }
    assert_eq!(show_bytes(212.4 * 1024.0 * 1024.0), "212 MiB");
    assert_eq!(show_bytes(1023.99), "1 KiB");
    assert_eq!(show_bytes(512.0), "512 B");
    assert_eq!(show_count(4_000_123.0), "4000123");
    assert_eq!(show_count(12.345), "12.3");
    assert_eq!(show_cores(1.2749), "1.27 cores");
    assert_eq!(show_rate(500.0), "500 /s");
}

/// All digits of a number are those that people would write.
#[test]
fn no_digit_is_of_a_products_making() {
    for (value, text) in [(0.95, "950 ms"), (0.29, "290 ms"), (0.000_57, "570 µs")] {
        let shown = seconds(value, 3);
        assert_eq!((shown.text.as_str(), shown.value), (text, value));
    }
}

#[test]
fn a_share_may_be_of_something_smaller() {
    assert_eq!(parse_ratio("250%"), Ok(2.5));
    assert_eq!(parse_ratio("1.5"), Ok(1.5));
    assert!(parse_ratio("2.5x").is_err() && parse_ratio("").is_err());
    let error = parse_share("250").unwrap_err();
    assert_eq!(error.suggestion.as_deref(), Some("250%"));
}

#[test]
fn a_share_is_never_rounded_to_all_or_nothing() {
    assert_eq!(show_share(1.0), "100 %");
    assert_eq!(show_share(0.0), "0 %");
    assert_eq!(show_share(0.99975), "99.98 %");
    assert_eq!(show_share(0.0004), "0.04 %");
    assert_eq!(show_share(0.999_999_9), "99.99999 %");
    assert_eq!(show_share(0.123_45), "12.3 %");
}

proptest! {
    #[test]
    fn durations_round_trip(nanos in any::<u64>()) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&write_duration(duration)), Ok(duration));
    }

    #[test]
    fn sizes_round_trip(bytes in any::<u64>(), shift in 0_u32..64) {
        let bytes = bytes >> shift << (shift / 2);
        prop_assert_eq!(parse_bytes(&write_bytes(bytes)), Ok(bytes));
    }

    #[test]
    fn no_text_breaks_a_reader(text in "[0-9._]{0,24}[a-zA-Zµ%/é]{0,4}|\\PC{0,24}") {
        let errors = [
            parse_duration(&text).err(),
            parse_bytes(&text).err(),
            parse_rate(&text).err(),
            parse_share(&text).err(),
            parse_count(&text).err(),
            parse_number(&text).err(),
            check_distribution(&text).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert!(text.get(error.at).is_some(), "marks are inside the text");
        }
    }

    #[test]
    fn what_is_shown_is_near(value in 1e-9_f64..1e15) {
        for shown in [seconds(value, 3), bytes(value.max(1.0), 3), count(value, 3), cores(value, 3)] {
            let value = if shown.text.ends_with('B') { value.max(1.0) } else { value };
            prop_assert!((shown.value - value).abs() <= value * 0.005_001, "{} {}", shown.text, value);
        }
    }
}

#[test]
fn thousands() {
    assert_eq!(grouped(0), "0");
    assert_eq!(grouped(1000), "1,000");
    assert_eq!(grouped(10_000_000), "10,000,000");
    assert_eq!(counted(0, "span", "spans"), "0 spans");
    assert_eq!(counted(1, "span", "spans"), "1 span");
    assert_eq!(counted(1_000, "entry", "entries"), "1,000 entries");
}
