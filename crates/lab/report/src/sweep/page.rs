//! A sweep as a page: its table, and a chart of every number over the first constant.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab_store::{Outcome, Unit};
use stats::nearest_rank;

use super::SweepRecord;
use crate::markup::{COLOURS, and_more, escaped, head};

/// Size of a chart in pixels, and what is left free for its axes.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const BELOW: f64 = 34.0;
const ABOVE: f64 = 12.0;
const RIGHT: f64 = 14.0;
/// Most charts of a page, and most lines in one.
const MOST_CHARTS: usize = 60;
const MOST_LINES: usize = 14;

/// One HTML file that needs nothing else; links lead to the reports beside it.
#[must_use]
pub fn html(sweep: &SweepRecord) -> String {
    let name = escaped(&sweep.name);
    let mut page = head(&format!("{}: sweep", sweep.name), "");
    let _ = write!(
        page,
        "<h1>{name}: sweep over {}</h1>\
         <p>{}. Of several runs of a setting the table shows the median; charts show each.</p>",
        escaped(&sweep.over.join(", ")),
        match &sweep.answer {
            Some(answer) => format!("{}, {}", escaped(&answer.text), sweep.progress()),
            None => format!(
                "{}, in an order that seed {} decided",
                sweep.progress(),
                sweep.seed
            ),
        },
    );
    page += &table(sweep);
    let charts = charts(sweep);
    let more = charts.len().saturating_sub(MOST_CHARTS);
    page.extend(charts.into_iter().take(MOST_CHARTS));
    if more > 0 {
        let _ = write!(
            page,
            "<p>And {more} more numbers, which the record has.</p>"
        );
    }
    page + "</html>\n"
}

fn table(sweep: &SweepRecord) -> String {
    let mut text = "<div class=\"scroll\"><table><tr>".to_owned();
    for name in &sweep.over {
        let _ = write!(text, "<th>{}", escaped(name));
    }
    let expectations = sweep.expectations();
    for that in &expectations {
        let _ = write!(text, "<th>{}", escaped(that));
    }
    text += "<th>runs</tr>";
    for at in sweep.rows() {
        text += "<tr>";
        for value in &sweep.settings[at] {
            let _ = write!(text, "<td>{}", escaped(value));
        }
        for number in 0..expectations.len() {
            let cell = sweep.cell(at, number);
            let measured = escaped(cell.measured().unwrap_or("–"));
            let (class, sign) = match (cell.held(), cell.outcomes.contains(&Outcome::Fail)) {
                ((_, 0), _) => ("so", String::new()),
                ((held, all), _) if held == all => ("", " ✓".to_owned()),
                ((0, 1), true) => ("no", " ✗".to_owned()),
                ((0, 1), false) => ("so", " ?".to_owned()),
                ((held, all), failed) => {
                    let class = if failed { "no" } else { "so" };
                    (class, format!(" held in {held} of {all}"))
                }
            };
            let _ = write!(text, "<td class=\"{class}\">{measured}{sign}");
        }
        text += "<td>";
        for (number, run) in (1..).zip(sweep.runs_of(at)) {
            let _ = match run.folder.is_empty() {
                true => write!(text, "<span class=\"no\">{number}</span> "),
                false => write!(
                    text,
                    "<a href=\"{}/report.html\">{number}</a> ",
                    escaped(&run.folder)
                ),
            };
        }
        text += "</tr>";
    }
    text + "</table></div>"
}

/// A chart of each metric that was measured.
fn charts(sweep: &SweepRecord) -> Vec<String> {
    let mut metrics: Vec<String> = Vec::new();
    for run in &sweep.runs {
        let values = run
            .verdict
            .expectations
            .iter()
            .flat_map(|one| one.values.keys());
        for metric in values {
            if !metrics.contains(metric) {
                metrics.push(metric.clone());
            }
        }
    }
    metrics.iter().map(|metric| chart(sweep, metric)).collect()
}

/// Values of one line by the place of the first constant's value.
type Line = BTreeMap<usize, Vec<f64>>;

fn chart(sweep: &SweepRecord, metric: &str) -> String {
    let mut places: Vec<&str> = Vec::new();
    for at in sweep.rows() {
        if let Some(first) = sweep.settings[at]
            .first()
            .filter(|first| !places.contains(&&***first))
        {
            places.push(first);
        }
    }
    let mut lines: Vec<(String, Line)> = Vec::new();
    let mut unit = Unit::Count;
    for run in &sweep.runs {
        let found = run.verdict.expectations.iter();
        let mut value =
            found.filter_map(|one| Some((one.values.get(metric)?, one.units.get(metric))));
        let value = value.next().map(|(value, of)| {
            unit = of.copied().unwrap_or(unit);
            value
        });
        let (Some(value), Some(setting)) = (value, sweep.settings.get(run.setting)) else {
            continue;
        };
        let Some(first) = setting.first() else {
            continue;
        };
        let Some(place) = places.iter().position(|place| place == first) else {
            continue;
        };
        let named = named_rest(sweep, setting);
        let at = match lines.iter().position(|(name, _)| *name == named) {
            Some(at) => at,
            None => {
                lines.push((named, Line::new()));
                lines.len() - 1
            }
        };
        lines[at].1.entry(place).or_default().push(*value);
    }
    let order = |named: &str| {
        let mut rest = sweep
            .settings
            .iter()
            .map(|setting| named_rest(sweep, setting));
        rest.position(|known| known == named)
    };
    lines.sort_by_key(|(named, _)| order(named));
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    let finite = lines.iter().flat_map(|(_, line)| line.values().flatten());
    let top = finite
        .filter(|value| value.is_finite())
        .fold(0.0, |a: f64, b| a.max(*b));
    let scale = Scale {
        places: places.len(),
        top: if top > 0.0 { top } else { 1.0 },
        unit,
    };
    let mut svg = format!(
        "<h2>{name}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" \
         aria-label=\"{name}\">",
        name = escaped(metric)
    );
    svg += &scale.axes(&places);
    for ((named, line), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let rest = match named.is_empty() {
            true => String::new(),
            false => format!(", {}", escaped(named)),
        };
        let middle: Vec<String> = line
            .iter()
            .filter_map(|(place, values)| {
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let median = nearest_rank(&sorted, 0.5).filter(|value| value.is_finite())?;
                Some(format!("{:.1},{:.1}", scale.x(*place), scale.y(median)))
            })
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            middle.join(" ")
        );
        for (place, values) in line {
            for value in values.iter().filter(|value| value.is_finite()) {
                let _ = write!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{} \
                     {}{rest}: {}</title></circle>",
                    scale.x(*place),
                    scale.y(*value),
                    escaped(sweep.over.first().map_or("", |name| name)),
                    escaped(places[*place]),
                    escaped(&scale.unit.show(*value)),
                );
            }
        }
    }
    svg += "</svg>";
    if sweep.over.len() > 1 {
        svg += "<p class=\"key\">";
        for ((name, _), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            let name = escaped(name);
            let _ = write!(
                svg,
                "<span><i style=\"background:{colour}\"></i>{name}</span>"
            );
        }
        svg += "</p>";
    }
    let noun = ["further line", "further lines"];
    svg + &and_more(more, noun, ", which the table has")
}

/// The other constants of a setting, by which the lines of a chart are told apart.
fn named_rest(sweep: &SweepRecord, setting: &[String]) -> String {
    let rest = sweep.over.iter().zip(setting).skip(1);
    let rest: Vec<String> = rest
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    rest.join(", ")
}

/// From values to pixels; zero is always in the chart.
struct Scale {
    places: usize,
    top: f64,
    unit: Unit,
}

impl Scale {
    fn x(&self, place: usize) -> f64 {
        let step = (WIDTH - LEFT - RIGHT) / self.places.max(1) as f64;
        LEFT + step * (place as f64 + 0.5)
    }

    fn y(&self, value: f64) -> f64 {
        let inside = HEIGHT - ABOVE - BELOW;
        HEIGHT - BELOW - (value / self.top).clamp(0.0, 1.0) * inside
    }

    /// A round distance between lines, of which there are three to seven.
    fn step(&self) -> f64 {
        // Sizes are counted in powers of two.
        if self.unit == Unit::Bytes && self.top >= 1.0 {
            return (self.top / 6.0).log2().ceil().exp2();
        }
        let raw = self.top / 6.0;
        let decade = 10_f64.powf(raw.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * decade);
        steps.into_iter().find(|step| *step >= raw).unwrap_or(raw)
    }

    fn axes(&self, places: &[&str]) -> String {
        let mut svg = String::new();
        let step = self.step();
        for part in 0..=(self.top / step).floor() as u32 {
            let value = step * f64::from(part);
            let y = self.y(value);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" \
                 opacity=\".15\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                self.unit.show(value)
            );
        }
        for (place, text) in places.iter().enumerate() {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.x(place),
                HEIGHT - 12.0,
                escaped(text)
            );
        }
        svg
    }
}
