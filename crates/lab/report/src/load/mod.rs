//! Load in the terminal: what is seen while it runs, and its result.

mod advice;
mod capacity;
mod details;
mod latency;
mod live;
mod over_time;
mod plot;
mod words;

use lab_load::Summary;
use lab_load::summary::Validity;
use units::show_share;

pub use capacity::point as capacity_point;
pub use live::{Live, live_block, live_line};

use crate::terminal::{Style, printable, wrap};
use words::{Paint, grouped, rate, seconds};

/// Narrowest and widest text.
const WIDTH: (usize, usize) = (80, 100);
/// Width of the first column.
const LABEL: usize = 12;
/// A rate may be so many times as high before that is said.
const APART: f64 = 1.01;

/// The result of a load: first whether it says something, then what it says.
///
/// Lines are at most `style.width` columns wide, but 80 at least and 100 at most. Control
/// characters are shown as `\u{..}`, so that nothing that the target answered can steer
/// the terminal.
#[must_use]
pub fn load_text(summary: &Summary, style: Style) -> String {
    let page = Page {
        width: style.width.clamp(WIDTH.0, WIDTH.1),
        paint: Paint(style.color),
    };
    let mut lines = page.head(summary);
    lines.extend(page.verdict(summary));
    let parts = [
        capacity::lines(&page, summary),
        latency::lines(&page, summary),
        plot::lines(&page, summary),
        over_time::lines(&page, summary),
        details::lines(&page, summary),
    ];
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        lines.push(String::new());
        lines.extend(part);
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// To a tenth of a second, but of what is shorter than one.
fn rounded(length_s: f64) -> f64 {
    match length_s < 1.0 {
        true => length_s,
        false => (length_s * 10.0).round() / 10.0,
    }
}

/// How wide text may be and whether it is coloured.
struct Page {
    width: usize,
    paint: Paint,
}

impl Page {
    /// A label, and text beside it that is broken to fit.
    fn labelled(&self, label: &str, text: &str) -> Vec<String> {
        let room = self.width - LABEL;
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        let parts = wrap(&printable(text), room);
        labels
            .zip(parts)
            .map(|(label, part)| format!("{}{part}", self.paint.dim(&format!("{label:LABEL$}"))))
            .collect()
    }

    fn head(&self, summary: &Summary) -> Vec<String> {
        let target = printable(&summary.target);
        let mut lines = vec![self.paint.bold(&target)];
        // Without the wait for the last answers; what older versions wrote does not tell that.
        let length_s = match summary.sending_s > 0.0 {
            true => summary.sending_s,
            false => summary.duration_s,
        };
        let length = seconds(rounded(length_s));
        let what = match &summary.capacity {
            // Rate and length are those of one hold of many, and told with them.
            Some(capacity) => format!("search for the knee in {} holds", capacity.points.len()),
            None => format!("{}, {length}", summary.arrivals),
        };
        let loop_model = format!("{} loop: {what}", summary.model);
        lines.extend(wrap(&loop_model, self.width));
        lines
    }

    fn verdict(&self, summary: &Summary) -> Vec<String> {
        let Validity {
            valid,
            reasons,
            loosened,
        } = &summary.validity;
        let mut lines = vec![String::new()];
        let (word, paint): (_, fn(&Paint, &str) -> String) = match valid {
            true => (words::VALID, Paint::good),
            false => (words::INVALID, Paint::bad),
        };
        let rates = self.labelled(word, &self.rates(summary));
        lines.extend(rates.into_iter().enumerate().map(|(at, line)| match at {
            0 => line.replacen(word, &paint(&self.paint, word), 1),
            _ => line,
        }));
        for reason in reasons {
            lines.extend(self.labelled("", &format!("{}: {}", reason.check, reason.found)));
            lines.extend(self.labelled("", &format!("→ {}", reason.help)));
        }
        for limit in loosened {
            lines.extend(self.labelled("loosened", limit));
        }
        if let Some(why) = &summary.partial {
            lines.extend(self.labelled("partial", &format!("{why}; {}", words::UNTIL_THEN)));
        }
        if let Some(growth) = &summary.steady.growth {
            let [each, low, high] = [growth.per_s, growth.low, growth.high].map(seconds);
            let text = format!(
                "median latency grows by {each} a second ({low} to {high}): it depends on how \
                 long the load goes on"
            );
            lines.extend(self.labelled("growing", &text));
        }
        for note in &summary.notes {
            lines.extend(self.labelled("note", note));
        }
        if summary.model == "closed" {
            let warning = "a closed loop waits for the target: it cannot see the queueing that \
                           users who do not wait for each other would suffer";
            lines.extend(self.labelled("note", warning));
        }
        lines
    }

    fn rates(&self, summary: &Summary) -> String {
        let (rates, requests) = (&summary.rate, &summary.requests);
        let asked = rates
            .asked
            .map_or(String::new(), |asked| format!("asked {}, ", rate(asked)));
        let (sent, good) = (rate(rates.sent), rate(rates.good));
        let told_apart = |best: &f64| *best > rates.good * APART;
        // How much a closed loop is slowed by a generator that reads one answer after the other is
        // far less than its bound.
        let best = rates.good_at_best.filter(|_| rates.asked.is_some());
        let best = best.filter(told_apart).map(|best| {
            let best = rate(best);
            format!(" (up to {best} but for the generator, which was late)")
        });
        let mut text = format!(
            "{asked}sent {sent}, good {good}{}: {} requests",
            best.unwrap_or_default(),
            grouped(requests.tried)
        );
        if let Some(share) = requests.failed_share.filter(|share| *share > 0.0) {
            let (failed, share) = (grouped(requests.failed), show_share(share));
            text += &format!(", of which {failed} failed ({share})");
        }
        if summary.after_end.answered > 0 {
            let late = grouped(summary.after_end.answered);
            text += &format!("; {late} answered after the end, which no rate counts");
        }
        text
    }
}

#[cfg(test)]
mod tests;
