//! How a number is found in what a command prints. Pure.

use std::sync::LazyLock;

use lab_judgement::Unit;
use regex::Regex;
use serde_json::Value;

/// Longest name of a metric, in characters.
const NAME_MOST: usize = 100;

/// A metric of a command.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) place: Place,
}

/// Where its number comes from.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// Processor time of the command and of all that it waited for.
    Cpu,
    /// From its start to its end.
    Wall,
    /// The last match in what it prints.
    Match(Regex),
    /// A place in the JSON that it prints.
    Pointer(String),
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: Unit,
}

/// What is compared when nobody says.
pub(crate) fn times() -> Vec<Reading> {
    let of = |name: &str, place| Reading {
        name: name.to_owned(),
        place,
    };
    vec![of("cpu", Place::Cpu), of("wall", Place::Wall)]
}

/// Reads `cpu`, `wall`, `NAME=REGEX` and `NAME=/json/pointer`.
pub(crate) fn reading(text: &str) -> Result<Reading, String> {
    if let Some(known) = times().into_iter().find(|known| known.name == text) {
        return Ok(known);
    }
    let Some((name, place)) = text.split_once('=') else {
        return Err("expected cpu, wall, NAME=REGEX or NAME=/json/pointer".into());
    };
    let name = name.trim();
    let length = name.chars().count();
    if !(1..=NAME_MOST).contains(&length) || name.contains(char::is_control) {
        return Err(format!(
            "a metric has a name of 1 to {NAME_MOST} characters"
        ));
    }
    let place = match place.starts_with('/') {
        true => Place::Pointer(place.to_owned()),
        false => Place::Match(Regex::new(place).map_err(|error| error.to_string())?),
    };
    let name = name.to_owned();
    Ok(Reading { name, place })
}

/// Finds what an expression or a pointer leads to; why not, if there is none.
pub(crate) fn find(place: &Place, stdout: &str, stderr: &str) -> Result<Quantity, String> {
    match place {
        Place::Pointer(pointer) => at_pointer(stdout, pointer),
        Place::Match(regex) => match last_match(regex, stdout) {
            Some(found) => found,
            None => last_match(regex, stderr)
                .unwrap_or_else(|| Err(format!("nothing that it printed matches {regex}"))),
        },
        // Whoever ran it knows these.
        Place::Cpu | Place::Wall => Err("this is measured, not printed".into()),
    }
}

fn at_pointer(stdout: &str, pointer: &str) -> Result<Quantity, String> {
    // Some say something before they print their result.
    let last = || stdout.lines().rev().find(|line| !line.trim().is_empty());
    let whole = serde_json::from_str::<Value>(stdout);
    let json = whole.or_else(|error| match last() {
        Some(line) => serde_json::from_str(line).map_err(|_| error),
        None => Err(error),
    });
    let json = json.map_err(|error| format!("expected JSON on its standard output: {error}"))?;
    let found = json
        .pointer(pointer)
        .ok_or_else(|| format!("its JSON has nothing at {pointer}"))?;
    match found {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            let unit = Unit::Count;
            usable(Quantity { value, unit })
        }
        Value::String(text) => quantity(text).map_or_else(
            || Err(format!("expected a number at {pointer}, found \"{text}\"")),
            usable,
        ),
        other => Err(format!("expected a number at {pointer}, found {other}")),
    }
}

fn last_match(regex: &Regex, text: &str) -> Option<Result<Quantity, String>> {
    let found = regex.captures_iter(text).last()?;
    let group = found.get(1).or_else(|| found.get(0))?;
    let (before, number, after) = (&text[..group.start()], group.as_str(), &text[group.end()..]);
    if cut(before, number, after) {
        return Some(Err(format!(
            "{regex} takes \"{number}\" out of a longer number: let it take the whole"
        )));
    }
    // The unit may stand behind the group.
    let line = after.lines().next().unwrap_or_default();
    if let Some(word) = unknown_factor(number, line) {
        return Some(Err(format!(
            "{regex} leads to \"{number}{word}\", whose \"{word}\" is no unit that it knows: have the number printed \
             plain"
        )));
    }
    let with_unit = quantity_before(&format!("{number}{line}"));
    let found = quantity(number).map(|alone| match alone.unit {
        Unit::Count => with_unit.unwrap_or(alone),
        _ => alone,
    });
    Some(found.map_or_else(
        || Err(format!("{regex} leads to \"{number}\", which is no number")),
        usable,
    ))
}

/// Whether digits of the same number stand around what was taken: 2 of 2,000 is no result.
fn cut(before: &str, number: &str, after: &str) -> bool {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mark = |c: Option<char>| matches!(c, Some('.' | ','));
    let (mut behind, mut ahead) = (before.chars().rev(), after.chars());
    let (last, next) = (behind.next(), ahead.next());
    let begins = digit(number.chars().next());
    let ends = digit(number.chars().last());
    let from_before = digit(last) || mark(last) && digit(behind.next());
    let into_after = digit(next) || mark(next) && digit(ahead.next());
    begins && from_before || ends && into_after
}

/// The word behind a number, without a space, that begins as a factor does and is none that is
/// known: 2 of 2Kfoo is no result.
fn unknown_factor<'t>(number: &str, after: &'t str) -> Option<&'t str> {
    let word = after
        .split(|c: char| !c.is_alphanumeric() && c != '/')
        .next()?;
    let ends = number.chars().last().is_some_and(|c| c.is_ascii_digit());
    (ends && factor_before(word).is_some() && scaled(1.0, word).is_none()).then_some(word)
}

/// A value that can be compared.
fn usable(found: Quantity) -> Result<Quantity, String> {
    match found.value.is_finite() && found.value >= 0.0 {
        true => Ok(found),
        false => Err(format!("found {}, expected 0 or more", found.value)),
    }
}

/// A whole text that is a number, with or without a unit.
fn quantity(text: &str) -> Option<Quantity> {
    let text = text.trim();
    let parts = NUMBER.captures(text)?;
    let unit = text[parts.get(0)?.end()..].trim_start();
    let value = number(parts.get(0)?.as_str())?;
    match unit {
        "" => Some(Quantity {
            value,
            unit: Unit::Count,
        }),
        unit => scaled(value, unit),
    }
}

/// The number at the beginning of a text, if a unit follows.
fn quantity_before(text: &str) -> Option<Quantity> {
    let text = text.trim_start();
    let parts = NUMBER.find(text)?;
    let rest = text[parts.end()..].trim_start();
    // A word that only begins as a unit does is none.
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')' | ']' | '"'));
    scaled(number(parts.as_str())?, &rest[..end.unwrap_or(rest.len())])
}

/// A number at the beginning: digits, in groups of three or not, a fraction, an exponent.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a constant, which the tests use")]
    Regex::new(r"^[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d+)?").expect("a regex")
});

fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// Units that are told apart, each with how much of [`Unit`] it is.
const UNITS: [(&str, f64, Unit); 25] = [
    ("ns", 1e-9, Unit::Seconds),
    ("us", 1e-6, Unit::Seconds),
    ("µs", 1e-6, Unit::Seconds),
    ("μs", 1e-6, Unit::Seconds),
    ("ms", 1e-3, Unit::Seconds),
    ("s", 1.0, Unit::Seconds),
    ("sec", 1.0, Unit::Seconds),
    ("seconds", 1.0, Unit::Seconds),
    ("m", 60.0, Unit::Seconds),
    ("min", 60.0, Unit::Seconds),
    ("h", 3_600.0, Unit::Seconds),
    ("B", 1.0, Unit::Bytes),
    ("bytes", 1.0, Unit::Bytes),
    ("kB", 1e3, Unit::Bytes),
    ("KB", 1e3, Unit::Bytes),
    ("MB", 1e6, Unit::Bytes),
    ("GB", 1e9, Unit::Bytes),
    ("TB", 1e12, Unit::Bytes),
    ("KiB", 1_024.0, Unit::Bytes),
    ("MiB", 1_048_576.0, Unit::Bytes),
    ("GiB", 1_073_741_824.0, Unit::Bytes),
    ("TiB", 1_099_511_627_776.0, Unit::Bytes),
    ("%", 0.01, Unit::Share),
    ("/s", 1.0, Unit::PerSecond),
    ("cores", 1.0, Unit::Cores),
];

/// What a word of a unit is in [`Unit`], and how much of it.
pub(crate) fn unit_of(word: &str) -> Option<(f64, Unit)> {
    let (_, factor, unit) = UNITS.into_iter().find(|(known, ..)| *known == word)?;
    Some((factor, unit))
}

fn scaled(value: f64, word: &str) -> Option<Quantity> {
    let (factor, unit) = unit_of(word).or_else(|| many(word))?;
    Some(Quantity {
        value: value * factor,
        unit,
    })
}

/// What stands behind a factor in front of no unit of [`UNITS`], alone or a second.
const COUNTED: [&str; 24] = [
    "", "bit", "bits", "b", "bps", "req", "reqs", "request", "requests", "op", "ops", "msg",
    "msgs", "row", "rows", "event", "events", "packets", "pps", "qps", "rps", "tps", "iops", "x",
];

/// What a word such as k, MiB/s or Gbits/sec is: programs change to the next factor by themselves,
/// so 1.02k is no less than 999.
fn many(word: &str) -> Option<(f64, Unit)> {
    let a_second = ["/sec", "/s"]
        .into_iter()
        .find_map(|per| word.strip_suffix(per));
    let (stem, unit) = match a_second {
        Some(stem) => (stem, Unit::PerSecond),
        None => (word, Unit::Count),
    };
    if let (Some(_), Some((factor, Unit::Bytes))) = (a_second, unit_of(stem)) {
        return Some((factor, unit));
    }
    let (factor, rest) = factor_before(stem).unwrap_or((1.0, stem));
    // A word without a factor is none of ours, unless it is a rate.
    let known = COUNTED.contains(&rest) && (rest.len() < stem.len() || rest == "x");
    known.then_some((factor, unit))
}

/// The factor that a word begins with, and what is left of it.
fn factor_before(word: &str) -> Option<(f64, &str)> {
    let mut rest = word.chars();
    let factor = match rest.next()? {
        'k' | 'K' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        'T' => 1e12,
        _ => return None,
    };
    Some((factor, rest.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(metric: &str, stdout: &str) -> Result<Quantity, String> {
        find(&reading(metric).unwrap().place, stdout, "")
    }

    #[track_caller]
    fn is(metric: &str, stdout: &str, value: f64, unit: Unit) {
        let found = found(metric, stdout).unwrap();
        assert!((found.value / value - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.unit, unit);
    }

    #[test]
    fn expressions_take_the_last_match_and_its_unit() {
        let text = "p50  20.3 ms   p99  950 ms\np50  20.4 ms   p99  1.2 s\n";
        is(r"p99=p99 +([\d.]+)", text, 1.2, Unit::Seconds);
        is(r"p50=p50 +([\d.]+ ms)", text, 0.0204, Unit::Seconds);
        is(r"n=(\S+) requests", "2,000 requests", 2000.0, Unit::Count);
        is(r"e=errors ([\d.]+)", "errors 2.5%, all", 0.025, Unit::Share);
        is(r"x=x=([\d.e-]+)", "x=1e-3 something", 0.001, Unit::Count);
        is(r"size=\d+KiB", "of 12KiB", 12.0 * 1024.0, Unit::Bytes);
        // A word that begins as a unit does.
        is(r"n=took (\d+)", "took 5 hours", 5.0, Unit::Count);
        let heard = find(&reading("n=n (.+)").unwrap().place, "", "n 7").unwrap();
        assert_eq!(heard.value, 7.0);
    }

    #[test]
    fn a_part_of_a_number_is_none() {
        for (metric, text) in [
            (r"n=(\d+) ", "12.5 "),
            (r"n=n (\d+)", "n 2,000"),
            (r"n=n (\d+)", "n 2.5"),
            (r"n=(\d\d)", "123"),
        ] {
            let error = found(metric, text).unwrap_err();
            assert!(error.contains("a longer number"), "{error}");
        }
        assert_eq!(found(r"n=n (\d+)", "n 2.").unwrap().value, 2.0);
    }

    /// As wrk, iperf and dd have them.
    #[test]
    fn a_factor_behind_a_number_counts() {
        let wrk = r"rate=Req/Sec +([0-9.]+)";
        is(wrk, "  Req/Sec   999.50    12.00 ", 999.5, Unit::Count);
        is(wrk, "  Req/Sec     1.02k    12.00 ", 1020.0, Unit::Count);
        is(wrk, "  Req/Sec     1.02M    12.00 ", 1.02e6, Unit::Count);
        is(
            r"b=([\d.]+) Gbits/sec",
            "9.41 Gbits/sec",
            9.41e9,
            Unit::PerSecond,
        );
        is(r"b=([\d.]+) [MG]", "941 Mbits/sec", 941e6, Unit::PerSecond);
        is(r"b=(\d+ MB/s)", "12 MB/s", 12e6, Unit::PerSecond);
        is(r"b=(\d+) KiB/s", "12 KiB/s", 12.0 * 1024.0, Unit::PerSecond);
        is(r"x=([\d.]+)", "1.5x", 1.5, Unit::Count);
        // Words that only begin so.
        is(r"n=(\d+)", "5 Members", 5.0, Unit::Count);
        is(r"n=(\d+)", "45msgs", 45.0, Unit::Count);
        is(r"n=(\d+)", "450req/s", 450.0, Unit::Count);
        let error = found(r"n=(\d+)", "12Kfoo").unwrap_err();
        assert!(error.contains("\"Kfoo\" is no unit"), "{error}");
    }

    #[test]
    fn pointers_lead_into_json() {
        let text = r#"{"a": {"b": [1, 2.5, "30 ms", "x", null, -1]}}"#;
        is("m=/a/b/1", text, 2.5, Unit::Count);
        is("m=/a/b/2", text, 0.03, Unit::Seconds);
        is("m=/a/b/0", &format!("hello\n{text}\n\n"), 1.0, Unit::Count);
        for (pointer, why) in [
            ("m=/a/b/3", "found \"x\""),
            ("m=/a/b/4", "found null"),
            ("m=/a/b/5", "0 or more"),
            ("m=/a/c", "nothing at /a/c"),
        ] {
            let error = found(pointer, text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let error = found("m=/a", "no json").unwrap_err();
        assert!(error.contains("expected JSON"), "{error}");
    }

    #[test]
    fn what_is_no_metric_is_told() {
        for (text, why) in [("p99", "NAME=REGEX"), ("=x", "a name"), ("a=(", "unclosed")] {
            let error = reading(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(matches!(reading("cpu").unwrap().place, Place::Cpu));
        assert!(
            found(r"n=n (\w+)", "n abc")
                .unwrap_err()
                .contains("no number")
        );
        assert!(found("n=y", "n").unwrap_err().contains("matches y"));
    }

    proptest! {
        #[test]
        fn numbers_are_read_back(value in 0.0..1e12_f64, unit in 0..UNITS.len()) {
            let (word, factor, kind) = UNITS[unit];
            let text = format!("result: {value} {word}\n");
            let found = found(r"r=result: ([\d.e-]+)", &text).unwrap();
            prop_assert_eq!(found.unit, kind);
            prop_assert!((found.value - value * factor).abs() <= value * factor * 1e-12);
        }

        #[test]
        fn nothing_that_is_printed_panics(text in ".{0,60}") {
            let _ = found(r"n=(\d+)", &text);
            let _ = found("n=/a", &text);
            let _ = found(r"n=([^a]*)", &text);
        }
    }
}
