//! Arrivals as people write them.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use units::{UnitError, Word, parse_count, parse_duration, parse_rate, write_duration};

use super::{Arrivals, Process, Shape};

/// Steps of a staircase whose number is not given.
const STEPS: u64 = 10;

const FORMS: &str = "forms: 5000/s, 100/s..5000/s over 60s, 100/s..5000/s steps of 20s, \
                     100/s for 20s, 500/s for 20s, sine 1000/s +- 500/s period 60s; \
                     before each: poisson, constant or burst 50";

impl Arrivals {
    /// Reads arrivals: `5000/s`, `constant 1000/s`, `burst 50 1000/s`,
    /// `100/s..5000/s over 60s`, `100/s..5000/s steps of 20s` (ten steps; or
    /// `in 6 steps of 20s`), `100/s for 20s, 500/s for 20s`,
    /// `sine 1000/s +- 500/s period 60s`. Any of them may begin with `poisson` (which
    /// is what is meant without), `constant` or `burst N`.
    ///
    /// The steps of a staircase grow by the same factor each, so that each limit is
    /// found to the same share of itself; rates between the ends are rounded to three
    /// digits.
    ///
    /// # Errors
    /// Text of another form, or arrivals that [`check`](Self::check) refuses.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let words = Word::all(text);
        let (process, rest) = match words.as_slice() {
            [word, rest @ ..] if word.text == "poisson" => (Process::Poisson, rest),
            [word, rest @ ..] if word.text == "constant" => (Process::Constant, rest),
            [word, number, rest @ ..] if word.text == "burst" => (burst(number)?, rest),
            rest => (Process::Poisson, rest),
        };
        let shape = match rest {
            [] => return Err(wrong(0..text.len(), "expected a rate, found nothing")),
            [word, rest @ ..] if word.text == "sine" => sine(word, rest)?,
            [first, ..] if first.text.contains("..") => slope(rest)?,
            [first] => Shape::Constant(read_rate(first)?),
            [_, second, ..] if second.text == "for" => stairs(rest)?,
            [first, second, ..] => match read_rate(first) {
                Ok(_) => {
                    let message = format!("\"{}\" after a rate is not understood", second.text);
                    return Err(wrong(second.at.clone(), &message).meant(second.text, ["for"]));
                }
                Err(_) => return Err(unknown(first)),
            },
        };
        let arrivals = Self::Rate { process, shape };
        arrivals
            .check()
            .map_err(|error| UnitError::new(0..text.len(), error.to_string()))?;
        Ok(arrivals)
    }

    /// The arrivals in words; [`parse`](Self::parse) reads them back, unless they are
    /// recorded times: `poisson 5000/s`, `constant 100/s..5000/s over 1m`.
    pub fn describe(&self) -> String {
        let (process, shape) = match self {
            Self::Trace(times) => {
                let seconds = times.last().map_or(0.0, |&last| last as f64 / 1e9);
                let count = units::show_count(times.len() as f64);
                return format!(
                    "trace of {count} requests over {}",
                    units::show_seconds(seconds)
                );
            }
            Self::Rate { process, shape } => (process, shape),
        };
        let process = match process {
            Process::Poisson => "poisson".to_owned(),
            Process::Constant => "constant".to_owned(),
            Process::Burst(count) => format!("burst {count}"),
        };
        format!("{process} {}", describe_shape(shape))
    }
}

fn describe_shape(shape: &Shape) -> String {
    match shape {
        Shape::Constant(constant) => rate(*constant),
        Shape::Ramp { from, to, over } => {
            format!(
                "{}..{} over {}",
                rate(*from),
                rate(*to),
                write_duration(*over)
            )
        }
        Shape::Steps(steps) => {
            let mut text = String::new();
            for (step, length) in steps {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(
                    text,
                    "{comma}{} for {}",
                    rate(*step),
                    write_duration(*length)
                );
            }
            text
        }
        Shape::Sine {
            mean,
            amplitude,
            period,
        } => {
            let period = write_duration(*period);
            format!(
                "sine {} +- {} period {period}",
                rate(*mean),
                rate(*amplitude)
            )
        }
    }
}

/// A rate per second, or in a longer unit where that takes fewer digits.
fn rate(per_second: f64) -> String {
    let plain = format!("{per_second}/s");
    let slower = [(60.0, "m"), (3600.0, "h")]
        .into_iter()
        .filter_map(|(seconds, unit)| {
            let whole = (per_second * seconds).round();
            (whole / seconds == per_second).then(|| format!("{whole}/{unit}"))
        });
    match plain.len() > "0.001/s".len() {
        true => slower.fold(plain, |best, other| {
            if other.len() < best.len() {
                other
            } else {
                best
            }
        }),
        false => plain,
    }
}

fn burst(number: &Word<'_>) -> Result<Process, UnitError> {
    let count = number.read(parse_count)?;
    let count = u32::try_from(count).map_err(|_| {
        let message = format!("a burst has 1 to 1,000,000 requests, found {count}");
        number.error(message)
    })?;
    Ok(Process::Burst(count))
}

/// `A..B over T` or `A..B [in] [N] steps of T`.
fn slope(words: &[Word<'_>]) -> Result<Shape, UnitError> {
    let [ends, rest @ ..] = words else {
        return Err(wrong(0..0, "expected rates"));
    };
    let (from, to) = ends.text.split_once("..").unwrap_or((ends.text, ""));
    let from = read_rate(&Word::at(from, ends.at.start))?;
    let to_at = ends.at.end - to.len();
    let to = read_rate(&Word::at(to, to_at))?;
    let rest = match rest {
        [word, rest @ ..] if word.text == "in" => rest,
        rest => rest,
    };
    let all = ends.at.start..words.last().map_or(ends.at.end, |word| word.at.end);
    match rest {
        [word, over] if word.text == "over" => Ok(Shape::Ramp {
            from,
            to,
            over: over.read(parse_duration)?,
        }),
        [steps, of, each] if is_one_of(steps, "steps") && of.text == "of" => {
            staircase(from, to, STEPS, each.read(parse_duration)?, all)
        }
        [count, steps, of, each] if is_one_of(steps, "steps") && of.text == "of" => {
            let number = count.read(parse_count)?;
            staircase(from, to, number, each.read(parse_duration)?, all)
        }
        [] => {
            let message = "a change of rate needs its length: over 60s, or steps of 20s";
            Err(UnitError::new(all, message).suggest(format!("{} over 60s", ends.text)))
        }
        [word, ..] => {
            let message =
                "after two rates comes \"over 60s\", \"steps of 20s\" or \"in 6 steps of 20s\"";
            Err(word
                .error(message)
                .meant(word.text, ["over", "steps", "in"]))
        }
    }
}

fn staircase(
    from: f64,
    to: f64,
    count: u64,
    each: Duration,
    at: Range<usize>,
) -> Result<Shape, UnitError> {
    if !(2..=1_000).contains(&count) {
        let message = format!("a staircase has 2 to 1,000 steps, found {count}");
        return Err(UnitError::new(at, message));
    }
    if from <= 0.0 || to <= 0.0 {
        let message =
            "the rates of a staircase are above 0, because each step grows by the same factor";
        return Err(UnitError::new(at, message));
    }
    let rates = (0..count).map(|step| match step {
        0 => from,
        last if last == count - 1 => to,
        step => three_digits(from * (to / from).powf(step as f64 / (count - 1) as f64)),
    });
    Ok(Shape::Steps(rates.map(|rate| (rate, each)).collect()))
}

/// The number rounded to three significant digits; rates are small enough for that.
fn three_digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

/// `A for T, B for T, …`
fn stairs(words: &[Word<'_>]) -> Result<Shape, UnitError> {
    let mut steps = Vec::new();
    let mut rest = words;
    while let [rate, middle, length, more @ ..] = rest {
        if middle.text != "for" {
            break;
        }
        let (text, comma) = match length.text.strip_suffix(',') {
            Some(text) => (text, true),
            None => (length.text, false),
        };
        steps.push((
            read_rate(rate)?,
            Word::at(text, length.at.start).read(parse_duration)?,
        ));
        rest = more;
        match (comma, more) {
            (true, []) => {
                return Err(length.error("a step is missing after the comma"));
            }
            (false, [next, ..]) => {
                return Err(next.error("steps are set apart by commas"));
            }
            _ => {}
        }
    }
    match rest {
        [] => Ok(Shape::Steps(steps)),
        [first, ..] => Err(wrong(
            first.at.clone(),
            "a step is a rate and its length: 100/s for 20s",
        )),
    }
}

/// `sine M +- A period T`
fn sine(name: &Word<'_>, words: &[Word<'_>]) -> Result<Shape, UnitError> {
    let [mean, sign, amplitude, period, length] = words else {
        let end = words.last().map_or(name.at.end, |word| word.at.end);
        return Err(wrong(
            name.at.start..end,
            "a wave is written sine 1000/s +- 500/s period 60s",
        ));
    };
    if !matches!(sign.text, "+-" | "±") {
        return Err(sign.error("expected +- between mean and distance"));
    }
    if period.text != "period" {
        let error = period.error("expected \"period\" and the length of a wave");
        return Err(error.meant(period.text, ["period"]));
    }
    Ok(Shape::Sine {
        mean: read_rate(mean)?,
        amplitude: read_rate(amplitude)?,
        period: length.read(parse_duration)?,
    })
}

/// Whether a word is this plural or its singular.
fn is_one_of(word: &Word<'_>, plural: &str) -> bool {
    word.text == plural || plural.strip_suffix('s') == Some(word.text)
}

fn read_rate(word: &Word<'_>) -> Result<f64, UnitError> {
    match word.text.starts_with(|c: char| c.is_alphabetic()) {
        true => Err(unknown(word)),
        false => word.read(parse_rate),
    }
}

fn unknown(word: &Word<'_>) -> UnitError {
    let message = format!("\"{}\" is not understood", word.text);
    let known = ["poisson", "constant", "burst", "sine"];
    wrong(word.at.clone(), &message).meant(word.text, known)
}

/// The error with all forms that would be right.
fn wrong(at: Range<usize>, message: &str) -> UnitError {
    UnitError::new(at, format!("{message}; {FORMS}"))
}
