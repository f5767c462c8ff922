//! An outcome as a page of its own.

use std::fmt::{self, Write as _};

use units::{grouped, show_seconds};

use super::text::{Bar, bars, percent};
use super::{Outcome, Reason};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Room for words below and beside the bars.
const MARGIN: f64 = 48.0;
/// Most rounds that are drawn one by one; of more, the slowest of each stretch.
const ROUNDS: usize = 240;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:760px;padding:0 1rem;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .5rem;border-bottom:1px solid #d8dde3;text-align:right}\
th:first-child,td:first-child{text-align:left}h1{font-size:1.25rem}h2{font-size:1rem;margin-top:2rem}\
rect{fill:#2f6fb0}text{font-size:11px;fill:#57606a}line{stroke:#8c959f}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}rect{fill:#6cb0f5}text{fill:#9da7b1}}";

impl Outcome {
    /// One HTML file that needs no other.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // A string takes whatever is written.
        let _ = self.write_page(&mut page);
        page
    }

    fn write_page(&self, page: &mut String) -> fmt::Result {
        let heading = escaped(&self.heading());
        write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{heading}</title>\
             <style>{STYLE}</style></head><body>\n<h1>{heading}</h1>\n"
        )?;
        let placed = grouped(self.placed as u64);
        let refused = grouped(self.refused as u64);
        let rounds = grouped(self.rounds.len() as u64);
        writeln!(
            page,
            "<p>{placed} placed, {refused} refused, in {rounds} rounds</p>"
        )?;
        let reasons = self
            .reasons
            .iter()
            .map(|Reason { text, instances }| vec![text.clone(), grouped(*instances as u64)]);
        table(page, &["refused for", "instances"], reasons.collect())?;
        let heads = ["spread", "min", "p50", "p99", "max", "variation"];
        table(page, &heads, self.spread_rows())?;
        writeln!(page, "<p>{}</p>", escaped(&self.stacking_text()))?;
        let (total, each) = (self.time.total, self.time.per_instance_us / 1e6);
        let (total, each) = (show_seconds(total), show_seconds(each));
        writeln!(
            page,
            "<p>Processor time of the placement: {total}, {each} an instance</p>"
        )?;

        let (width, memory) = bars(self.by_cell.iter().map(|cell| cell.0));
        chart(page, "Cells by used memory", &memory, width, percent)?;
        let (width, containers) = bars(self.by_cell.iter().map(|cell| f64::from(cell.1)));
        let shown = |number: f64| format!("{number:.0}");
        chart(
            page,
            "Cells by instances",
            &containers,
            width.max(1.0),
            shown,
        )?;
        self.write_rounds(page)?;
        writeln!(page, "</body></html>")
    }

    /// Processor time of an instance, round after round.
    fn write_rounds(&self, page: &mut String) -> fmt::Result {
        let rounds = self.rounds.iter().zip(&self.time.rounds);
        let each: Vec<f64> = rounds
            .map(|(round, time)| time * 1e9 / round.asked.max(1) as f64)
            .collect();
        let stretch = each.len().div_ceil(ROUNDS).max(1);
        let slowest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        let bars: Vec<Bar> = each
            .chunks(stretch)
            .enumerate()
            .map(|(number, times)| Bar {
                from: (number * stretch + 1) as f64,
                count: slowest(times).round() as usize,
            })
            .collect();
        let about = "Processor time of an instance in ns, by round";
        chart(page, about, &bars, stretch as f64, |number| {
            format!("{number:.0}")
        })
    }
}

fn table(page: &mut String, heads: &[&str], rows: Vec<Vec<String>>) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    write!(page, "<table>\n{}", row("th", heads.iter().copied()))?;
    for cells in rows {
        page.push_str(&row("td", cells.iter().map(String::as_str)));
    }
    writeln!(page, "</table>")
}

fn row<'c>(kind: &str, cells: impl Iterator<Item = &'c str>) -> String {
    let cells = cells.map(|cell| format!("<{kind}>{}</{kind}>", escaped(cell)));
    format!("<tr>{}</tr>\n", cells.collect::<String>())
}

fn chart(
    page: &mut String,
    about: &str,
    bars: &[Bar],
    width: f64,
    shown: impl Fn(f64) -> String,
) -> fmt::Result {
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let about = escaped(about);
    writeln!(page, "<h2>{about}</h2>")?;
    writeln!(
        page,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{about}\">"
    )?;
    let (wide, high) = (WIDTH - 2.0 * MARGIN, HEIGHT - MARGIN);
    let step = wide / bars.len().max(1) as f64;
    for (number, bar) in bars.iter().enumerate() {
        let height = high * bar.count as f64 / most as f64;
        let (x, y) = (MARGIN + number as f64 * step, high - height + 8.0);
        let what = format!(
            "{} to {}: {}",
            shown(bar.from),
            shown(bar.from + width),
            bar.count
        );
        writeln!(
            page,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
            (step - 1.0).max(0.5),
            escaped(&what),
        )?;
    }
    let floor = high + 8.0;
    let right = WIDTH - MARGIN;
    writeln!(
        page,
        "<line x1=\"{MARGIN}\" y1=\"{floor}\" x2=\"{right}\" y2=\"{floor}\"/>"
    )?;
    writeln!(
        page,
        "<text x=\"{}\" y=\"18\" text-anchor=\"end\">{}</text>",
        MARGIN - 6.0,
        grouped(most as u64)
    )?;
    if let (Some(first), Some(last)) = (bars.first(), bars.last()) {
        for (x, anchor, number) in [
            (MARGIN, "start", first.from),
            (right, "end", last.from + width),
        ] {
            let number = escaped(&shown(number));
            writeln!(
                page,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{number}</text>",
                floor + 18.0
            )?;
        }
    }
    writeln!(page, "</svg>")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
