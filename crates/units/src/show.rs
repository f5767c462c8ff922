//! Quantities as people read them: three significant digits and a unit.

/// Significant digits, unless more are asked for.
const DIGITS: usize = 3;

/// A quantity as it is shown, and the value that a reader takes from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// Number and unit.
    pub text: String,
    /// What the text says, in the base unit.
    pub value: f64,
}

/// A length of time in seconds: `1.27 s`, `45 ms`, `20.5 min`. An infinite one is how long
/// an answer took that never came: `no answer`.
pub fn show_seconds(value: f64) -> String {
    seconds(value, DIGITS).text
}

/// A size in bytes: `212 MiB`.
pub fn show_bytes(value: f64) -> String {
    bytes(value, DIGITS).text
}

/// A share of 1: `99.9 %`. `100 %` and `0 %` are shown for exactly all and nothing.
pub fn show_share(value: f64) -> String {
    share(value, DIGITS).text
}

/// A number of things: every digit of a whole number, three significant ones else.
pub fn show_count(value: f64) -> String {
    count(value, DIGITS).text
}

/// Every digit of a whole number, with commas between thousands: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 span`, `1,234 spans`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", grouped(number))
}

/// A number of processor cores: `1.27 cores`.
pub fn show_cores(value: f64) -> String {
    cores(value, DIGITS).text
}

/// So many a second: `500 /s`.
pub fn show_rate(value: f64) -> String {
    rate(value, DIGITS).text
}

/// As [`show_seconds`], with so many significant digits, and the value shown.
pub fn seconds(value: f64, digits: usize) -> Shown {
    // Minutes and hours begin at two: 90 s reads better than 1.5 min.
    const UNITS: [(f64, f64, &str); 6] = [
        (1e-9, 0.0, "ns"),
        (1e-6, 1e-6, "µs"),
        (1e-3, 1e-3, "ms"),
        (1.0, 1.0, "s"),
        (60.0, 120.0, "min"),
        (3600.0, 7200.0, "h"),
    ];
    if value == f64::INFINITY {
        let text = "no answer".to_owned();
        return Shown { text, value };
    }
    scaled(value, digits, &UNITS, "s")
}

/// As [`show_bytes`], with so many significant digits, and the value shown.
pub fn bytes(value: f64, digits: usize) -> Shown {
    const KI: f64 = 1024.0;
    const UNITS: [(f64, f64, &str); 5] = [
        (1.0, 0.0, "B"),
        (KI, KI, "KiB"),
        (KI * KI, KI * KI, "MiB"),
        (KI * KI * KI, KI * KI * KI, "GiB"),
        (KI * KI * KI * KI, KI * KI * KI * KI, "TiB"),
    ];
    scaled(value, digits, &UNITS, "B")
}

/// As [`show_share`], with so many significant digits, and the value shown.
pub fn share(value: f64, digits: usize) -> Shown {
    let percent = value * 100.0;
    let mut shown = Shown {
        text: String::new(),
        value,
    };
    for digits in digits..=17 {
        let text = significant(percent, digits);
        shown.value = crate::parse_share(&format!("{text}%")).unwrap_or(value);
        shown.text = format!("{text} %");
        let extreme = |share: f64| share == 0.0 || share == 1.0;
        if extreme(shown.value) == extreme(value) {
            break;
        }
    }
    shown
}

/// As [`show_count`], with so many significant digits, and the value shown.
pub fn count(value: f64, digits: usize) -> Shown {
    plain(value, digits, "")
}

/// As [`show_cores`], with so many significant digits, and the value shown.
pub fn cores(value: f64, digits: usize) -> Shown {
    plain(value, digits, " cores")
}

/// As [`show_rate`], with so many significant digits, and the value shown.
pub fn rate(value: f64, digits: usize) -> Shown {
    plain(value, digits, " /s")
}

fn plain(value: f64, digits: usize, unit: &str) -> Shown {
    let text = significant(value, digits);
    let value = text.parse().unwrap_or(value);
    Shown {
        text: text + unit,
        value,
    }
}

/// Shows a value in the largest unit that it reaches. Each unit is its size, the
/// value from which it is used, and its name.
fn scaled(value: f64, digits: usize, units: &[(f64, f64, &str)], base: &str) -> Shown {
    if value == 0.0 {
        return Shown {
            text: format!("0 {base}"),
            value,
        };
    }
    let mut shown = Shown {
        text: format!("{value} {base}"),
        value,
    };
    for &(size, from, name) in units {
        // 999.9 ms rounds to a second, so the rounded value picks the unit.
        let reached = shown.value.abs().max(value.abs());
        if reached < from {
            break;
        }
        let text = significant(value / size, digits);
        let told = text.parse::<f64>().map_or(value, |number| number * size);
        // 0.95 s is 950 ms, though the product of 950 and a thousandth is not quite 0.95.
        let is_same = (told - value).abs() <= 2.0 * f64::EPSILON * value.abs();
        shown.value = if is_same { value } else { told };
        shown.text = format!("{text} {name}");
    }
    shown
}

/// At least `digits` significant digits; digits before the point are all kept, and
/// zeros at the end of a fraction are dropped.
fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{}", value.abs());
    }
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent = scientific
        .split_once('e')
        .and_then(|(_, e)| e.parse::<i32>().ok());
    let wanted = i32::try_from(digits).unwrap_or(i32::MAX);
    let decimals = wanted
        .saturating_sub(1)
        .saturating_sub(exponent.unwrap_or(0))
        .max(0);
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
