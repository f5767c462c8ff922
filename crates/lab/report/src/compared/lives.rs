//! The lives of a lifecycle's entities in both runs, one picture above the other.

use std::fmt::Write as _;

use lab_lifecycle::{Row, Table, span};
use stats::nearest_rank;
use units::show_seconds;

use super::{LifecyclePair, entities};
use crate::markup::{COLOURS, escaped};

/// Most rows of a picture; of more entities, each row is one of as many as it stands for.
const ROWS: usize = 120;
/// Height of a picture in pixels, at most, and of a row.
const HEIGHT: f64 = 180.0;
const ROW: f64 = 12.0;
const WIDTH: f64 = 960.0;
/// What the widest row may be longer than what is drawn: a few outliers must not hide the rest.
const DRAWN: f64 = 0.99;
const SECOND_NS: f64 = 1e9;

/// A life, as far as it was seen: its points in order, and nanoseconds since the first of them.
struct Life<'t> {
    id: &'t str,
    seen: Vec<(usize, i64)>,
}

impl Life<'_> {
    fn length_ns(&self) -> i64 {
        self.seen.last().map_or(0, |(_, at)| *at)
    }
}

/// Both pictures, and how long each phase took in each run.
pub(super) fn of(pair: &LifecyclePair) -> String {
    let sides = [("base", pair.base.as_ref()), ("new", pair.new.as_ref())];
    let lives = sides.map(|(_, table)| table.map(lives).unwrap_or_default());
    let reach = lives.iter().filter_map(|lives| {
        let lengths: Vec<i64> = lives.iter().map(Life::length_ns).collect();
        nearest_rank(&lengths, DRAWN)
    });
    let reach_ns = reach.max().unwrap_or(0).max(1);
    let mut text = format!("<h3>{}</h3>{}", escaped(&pair.name), key(pair));
    for ((side, table), lives) in sides.iter().zip(&lives) {
        let slowest = lives.last().filter(|life| life.length_ns() > reach_ns);
        let _ = write!(
            text,
            "<p>{side}: {}{}</p>{}",
            entities(*table),
            slowest.map_or_else(String::new, |life| {
                let length = show_seconds(life.length_ns() as f64 / SECOND_NS);
                format!("; the slowest, {}, took {length}", escaped(life.id))
            }),
            picture(lives, reach_ns)
        );
    }
    let _ = write!(
        text,
        "<p>The right edge is {} after the first point.</p>",
        show_seconds(reach_ns as f64 / SECOND_NS)
    );
    text + &phases(pair)
}

/// Lives with at least two points, the shortest first.
fn lives(table: &Table) -> Vec<Life<'_>> {
    let mut lives: Vec<Life> = table.rows.iter().filter_map(life).collect();
    lives.sort_by_key(Life::length_ns);
    lives
}

fn life(row: &Row) -> Option<Life<'_>> {
    let seen = row.at_ns.iter().enumerate();
    let seen: Vec<(usize, i64)> = seen
        .filter_map(|(point, at)| Some((point, (*at)?)))
        .collect();
    let (_, first) = *seen.first()?;
    let mut latest = 0;
    let seen = seen.into_iter().map(|(point, at)| {
        // What runs backwards has no length.
        latest = at.saturating_sub(first).max(latest);
        (point, latest)
    });
    let seen: Vec<(usize, i64)> = seen.collect();
    (seen.len() > 1).then_some(Life { id: &row.id, seen })
}

/// Which entity each row shows, of so many: the quickest, the slowest, and evenly between.
fn shown(count: usize) -> Vec<usize> {
    let rows = count.min(ROWS);
    let last = rows.saturating_sub(1).max(1);
    (0..rows).map(|row| row * (count - 1) / last).collect()
}

fn picture(lives: &[Life], reach_ns: i64) -> String {
    let rows = shown(lives.len());
    if rows.is_empty() {
        return String::new();
    }
    let row_height = (HEIGHT / rows.len() as f64).min(ROW);
    let height = row_height * rows.len() as f64;
    let mut text = format!(
        "<svg class=\"lives\" viewBox=\"0 0 {WIDTH} {height:.1}\" role=\"img\" aria-label=\"lives\">"
    );
    let x = |at: i64| (at as f64 / reach_ns as f64).min(1.0) * WIDTH;
    for (row, life) in rows.iter().map(|at| &lives[*at]).enumerate() {
        for pair in life.seen.windows(2) {
            let ((_, from), (point, to)) = (pair[0], pair[1]);
            let width = x(to) - x(from);
            if width > 0.0 {
                let _ = write!(
                    text,
                    "<rect fill=\"{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{row_height:.2}\"/>",
                    colour(point),
                    x(from),
                    row as f64 * row_height,
                );
            }
        }
    }
    text + "</svg>"
}

/// Of the phase that ends with a point, by the point's number.
fn colour(point: usize) -> &'static str {
    COLOURS[point.saturating_sub(1) % COLOURS.len()]
}

fn points(pair: &LifecyclePair) -> &[String] {
    let table = pair.base.as_ref().or(pair.new.as_ref());
    table.map_or(&[], |table| &table.points)
}

fn key(pair: &LifecyclePair) -> String {
    let mut text = "<p class=\"key\">".to_owned();
    for (number, phase) in points(pair).windows(2).enumerate() {
        let _ = write!(
            text,
            "<span><i style=\"background:{}\"></i>{} → {}</span>",
            colour(number + 1),
            escaped(&phase[0]),
            escaped(&phase[1])
        );
    }
    text + "</p>"
}

/// How long each phase took, and the whole.
fn phases(pair: &LifecyclePair) -> String {
    let points = points(pair);
    let mut text = "<div class=\"scroll\"><table><tr><th>phase<th>base p50<th>new p50<th>base p99<th>new p99</tr>".to_owned();
    let adjacent = points.windows(2).map(|two| (&two[0], &two[1]));
    let whole = points.first().zip(points.last());
    for (from, to) in adjacent.chain(whole.filter(|_| points.len() > 2)) {
        let _ = write!(text, "<tr><td>{} → {}", escaped(from), escaped(to));
        for quantile in [0.5, 0.99] {
            for table in [&pair.base, &pair.new] {
                let length = table.as_ref().and_then(|table| span(table, from, to).ok());
                let length = length.and_then(|found| nearest_rank(&found.sorted_ns, quantile));
                let _ = write!(
                    text,
                    "<td>{}",
                    length.map_or_else(|| "–".to_owned(), |ns| show_seconds(ns as f64 / SECOND_NS))
                );
            }
        }
        text += "</tr>";
    }
    text + "</table></div>"
}
