//! Durations and sizes as Diego writes them.

use std::time::Duration;

/// A duration as Go prints it: `1s`, `1.5s`, `2m0s`, `300ms`; to the millisecond, which is
/// the unit of everything that is told here.
pub(in crate::rep) fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos() + 500_000;
    let millis = u64::try_from(nanos / 1_000_000).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".into();
    }
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (whole, rest) = (millis / 1000, millis % 1000);
    let (hours, minutes, seconds) = (whole / 3600, whole % 3600 / 60, whole % 60);
    let fraction = format!(".{rest:03}");
    let fraction = match rest {
        0 => "",
        _ => fraction.trim_end_matches('0'),
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, minutes) => format!("{minutes}m{seconds}{fraction}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

/// A size as the executor logs it: `3B`, `1.5K`, `52M`.
pub(in crate::rep) fn byte_size(bytes: u64) -> String {
    // 6 at most, which is what 64 bits hold.
    let unit = (bytes | 1).ilog2() / 10;
    let text = format!("{:.1}", bytes as f64 / (1_u64 << (10 * unit)) as f64);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    let units = ["B", "K", "M", "G", "T", "P", "E"];
    format!("{text}{}", units[unit as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_in_go() {
        for (bytes, expected) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (54_735_667, "52.2M"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(byte_size(bytes), expected);
        }
    }

    #[test]
    fn durations_read_as_in_go() {
        let text = |ms| duration(Duration::from_millis(ms));
        assert_eq!(text(0), "0s");
        assert_eq!(text(300), "300ms");
        assert_eq!(text(1000), "1s");
        assert_eq!(text(1500), "1.5s");
        assert_eq!(text(3007), "3.007s");
        assert_eq!(text(120_000), "2m0s");
        assert_eq!(text(61_020), "1m1.02s");
        assert_eq!(text(3_661_000), "1h1m1s");
        assert_eq!(duration(Duration::from_micros(2_999_600)), "3s");
    }
}
