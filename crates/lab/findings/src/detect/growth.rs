//! Work that takes the longer the more there is of something.

use stats::{autocorrelation, independent_values, mean, student_quantile};
use units::{show_count, show_seconds, show_share};

use crate::finding::{Chart, Finding, Kind, Number, Share, ShareOf};

/// Fewest turns, and how far their sizes must reach: within a factor of four, n and n log n look the same.
const FEWEST: usize = 12;
const REACH: f64 = 4.0;

/// The duration must grow by this factor over the sizes that were seen, and with this power of them at
/// least.
const FACTOR: f64 = 2.0;
const POWER: f64 = 0.5;

/// By how much the criterion must prefer growth to none: odds of 150 to 1.
const PREFERRED: f64 = 10.0;

/// Classes whose criteria differ by less are not told apart.
const ALIKE: f64 = 4.0;

/// By how much a class may lie beside the power that the durations show.
const BESIDE: f64 = 0.15;

/// The turns of a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopTurns<'a> {
    /// The system that the loop is of.
    pub system: &'a str,
    /// As the experiment's file names it.
    pub name: &'a str,
    /// What the size counts, in the plural: `instances`.
    pub size_of: &'a str,
    /// When the first turn began and the last ended, in seconds.
    pub span_s: (f64, f64),
    /// Size and duration in seconds of each turn.
    pub turns: &'a [(f64, f64)],
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Class {
    Constant,
    Logarithm,
    Linear,
    Linearithmic,
    Square,
}

impl Class {
    const ALL: [Self; 5] = [
        Self::Constant,
        Self::Logarithm,
        Self::Linear,
        Self::Linearithmic,
        Self::Square,
    ];

    /// Logarithm of the class's value for a size.
    fn of(self, size: f64) -> f64 {
        // One more: a size of 1 takes some time, too.
        let log = size.ln_1p().ln();
        match self {
            Self::Constant => 0.0,
            Self::Logarithm => log,
            Self::Linear => size.ln(),
            Self::Linearithmic => size.ln() + log,
            Self::Square => 2.0 * size.ln(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Constant => "1",
            Self::Logarithm => "log n",
            Self::Linear => "n",
            Self::Linearithmic => "n log n",
            Self::Square => "n²",
        }
    }

    /// The power of the size that it looks like between two sizes.
    fn power(self, least: f64, most: f64) -> f64 {
        (self.of(most) - self.of(least)) / (most / least).ln()
    }
}

/// A loop whose durations grow with a size: as n, n log n or n² (or a power between them).
///
/// Least squares on logarithms, the class by Akaike's criterion corrected for few values (Hurvich and Tsai,
/// "Regression and time series model selection in small samples", 1989), in which turns whose neighbours'
/// deviations are alike count as fewer.
#[must_use]
pub fn growth(of: &LoopTurns<'_>) -> Option<Finding> {
    let mut turns: Vec<(f64, f64)> = of
        .turns
        .iter()
        .copied()
        .filter(|(size, seconds)| *size >= 1.0 && *seconds > 0.0 && (size * seconds).is_finite())
        .collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (turns.first()?.0, turns.last()?.0);
    if turns.len() < FEWEST || most < REACH * least {
        return None;
    }
    let line = Line::through(&turns)?;
    let factor = (line.power * (most / least).ln()).exp();
    if line.low < POWER || factor < FACTOR {
        return None;
    }
    let fits: Vec<(Class, f64)> = Class::ALL
        .into_iter()
        .filter_map(|class| Some((class, criterion(class, &turns, line.independent)?)))
        .collect();
    let best = fits.iter().map(|fit| fit.1).fold(f64::INFINITY, f64::min);
    let constant = fits.first().map(|fit| fit.1)?;
    if constant - best < PREFERRED {
        return None;
    }
    let fits_power = |class: Class| {
        let power = class.power(least, most);
        (line.low - BESIDE..=line.high + BESIDE).contains(&power)
    };
    let alike: Vec<&str> = fits
        .iter()
        .filter(|(class, fit)| *fit < best + ALIKE && fits_power(*class))
        .map(|(class, _)| class.name())
        .collect();
    let class = if alike.is_empty() {
        format!("about n^{:.1}", line.power)
    } else {
        alike.join(" or ")
    };
    let shortest = line.at(least);
    let longest = line.at(most);
    let grown = |power: f64| 1.0 - (-power * (most / least).ln()).exp();
    let effect = Share {
        value: grown(line.power),
        low: grown(line.low),
        high: grown(line.high),
    };
    let sentence = format!(
        "{} takes time that grows as {class}: {} with {} {}, {} with {}; {} of a turn is growth",
        of.name,
        show_seconds(shortest),
        show_count(least),
        of.size_of,
        show_seconds(longest),
        show_count(most),
        show_share((effect.value * 1000.0).round() / 1000.0)
    );
    let number = |name, value| Number { name, value };
    Some(Finding {
        kind: Kind::Growth,
        system: of.system.to_owned(),
        part: of.name.to_owned(),
        from_s: of.span_s.0,
        to_s: of.span_s.1,
        chart: Chart::Loops,
        effect,
        of: ShareOf::Latency,
        evidence: vec![
            number("power", line.power),
            number("power_low", line.low),
            number("power_high", line.high),
            number("longest_s", longest),
        ],
        sentence,
    })
}

/// Logarithm of the duration over that of the size.
struct Line {
    power: f64,
    low: f64,
    high: f64,
    level: f64,
    independent: f64,
}

impl Line {
    fn through(turns: &[(f64, f64)]) -> Option<Self> {
        let sizes: Vec<f64> = turns.iter().map(|turn| turn.0.ln()).collect();
        let times: Vec<f64> = turns.iter().map(|turn| turn.1.ln()).collect();
        let spread = stats::variance(&sizes)?;
        let power = stats::covariance(&sizes, &times)? / spread;
        let level = mean(&times)? - power * mean(&sizes)?;
        let residuals: Vec<f64> = sizes
            .iter()
            .zip(&times)
            .map(|(size, time)| time - level - power * size)
            .collect();
        let alike = autocorrelation(&residuals).unwrap_or(0.0);
        let independent = independent_values(turns.len(), alike).max(5.0);
        let around = stats::variance(&residuals)?;
        let error = (around / spread / (independent - 2.0)).sqrt();
        let reach = error * student_quantile(0.975, independent - 2.0);
        Some(Self {
            power,
            low: power - reach,
            high: power + reach,
            level,
            independent,
        })
    }

    fn at(&self, size: f64) -> f64 {
        (self.level + self.power * size.ln()).exp()
    }
}

/// Akaike's criterion of a class with one factor and one deviation.
fn criterion(class: Class, turns: &[(f64, f64)], independent: f64) -> Option<f64> {
    let away: Vec<f64> = turns
        .iter()
        .map(|(size, seconds)| seconds.ln() - class.of(*size))
        .collect();
    // Durations are known to a thousandth at best: an exact fit is not infinitely better.
    let around = stats::variance(&away)?.max(1e-6);
    let parameters = 2.0;
    let few = 2.0 * parameters * (parameters + 1.0) / (independent - parameters - 1.0);
    Some(independent * around.ln() + 2.0 * parameters + few)
}
