use lab_judgement::{Direction, Metric, Unit, compare_groups};
use lab_lifecycle::Row;

use super::*;

/// A lifecycle whose entities take these milliseconds for each of two phases.
fn table(lives: &[[Option<i64>; 2]]) -> Table {
    let row = |(number, life): (usize, &[Option<i64>; 2])| {
        let begin = number as i64 * 50;
        let first = life[0].map(|length| begin + length);
        let second = life[1].map(|length| first.unwrap_or(begin) + length);
        let at = [Some(begin), first, second];
        Row {
            id: format!("e<{number}>").into(),
            group: None,
            at_ns: at.iter().map(|at| at.map(|at| at * 1_000_000)).collect(),
        }
    };
    Table {
        name: "task".to_owned(),
        points: ["asked", "placed", "done"].map(str::to_owned).to_vec(),
        rows: lives.iter().enumerate().map(row).collect(),
    }
}

fn rects(picture: &str) -> Vec<(f64, f64)> {
    let number = |element: &str, name: &str| -> f64 {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let elements = picture.split("<rect fill").skip(1);
    elements
        .map(|element| (number(element, "x"), number(element, "width")))
        .collect()
}

fn page(metrics: &[Comparison], lifecycles: &[LifecyclePair]) -> String {
    let runs = ["a <run>".to_owned()];
    let compared = Compared {
        base: &runs,
        new: &runs,
        differences: &[],
        verdict: Verdict::Worse,
        sentence: "worse: p99",
        metrics,
    };
    html(&compared, lifecycles)
}

#[test]
fn lives_of_both_runs_have_one_scale() {
    let pair = LifecyclePair {
        name: "task".to_owned(),
        base: Some(table(&[[Some(100), Some(100)], [Some(200), Some(200)]])),
        new: Some(table(&[[Some(400), Some(400)], [Some(100), None]])),
    };
    let page = page(&[], &[pair]);
    let pictures: Vec<&str> = page.split("class=\"lives\"").skip(1).collect();
    assert_eq!(pictures.len(), 2);
    let upper = pictures[0].split("</svg>").next().unwrap();
    let lower = pictures[1].split("</svg>").next().unwrap();
    // 800 ms are 960 pixels in both; the quickest first, begin by begin.
    assert_eq!(
        rects(upper),
        [(0.0, 120.0), (120.0, 120.0), (0.0, 240.0), (240.0, 240.0)]
    );
    assert_eq!(rects(lower), [(0.0, 120.0), (0.0, 480.0), (480.0, 480.0)]);
    assert!(page.contains("The right edge is 800 ms"), "{page}");
    assert!(
        page.contains("<td>asked → done<td>200 ms<td>800 ms<td>400 ms<td>800 ms"),
        "{page}"
    );
    assert!(page.contains("a &lt;run&gt;") && !page.contains("<run>"));
    assert!(page.contains("nothing in file, environment and machine"));
}

#[test]
fn an_outlier_is_named_and_does_not_hide_the_others() {
    let mut lives = vec![[Some(100), Some(100)]; 999];
    lives.push([Some(100), Some(60_000)]);
    let pair = LifecyclePair {
        name: "task".to_owned(),
        base: Some(table(&lives)),
        new: None,
    };
    let page = page(&[], &[pair]);
    assert!(page.contains("The right edge is 200 ms"), "{page}");
    assert!(
        page.contains("1,000 entities; the slowest, e&lt;999&gt;, took 60.1 s"),
        "{page}"
    );
    assert!(page.contains("new: has no such lifecycle"));
    // The last row is the slowest; what lies beyond the edge ends there.
    let found = rects(&page);
    assert_eq!((found.len(), found[239]), (240, (480.0, 480.0)));
}

#[test]
fn what_was_judged_stands_with_its_interval() {
    let metric = Metric {
        name: "p99".to_owned(),
        unit: Unit::Seconds,
        direction: Direction::LowerIsBetter,
    };
    let base: Vec<f64> = (0..12).map(|run| 0.1 + f64::from(run) / 1e4).collect();
    let new: Vec<f64> = base.iter().map(|value| value * 1.5).collect();
    let worse = compare_groups(&metric, 0.05, &base, &new);
    let same = compare_groups(&metric, 0.05, &base, &base);
    let page = page(&[worse, same], &[]);
    assert!(
        page.contains("<td class=\"no\">worse") && page.contains("not worse"),
        "{page}"
    );
    assert_eq!(page.matches("class=\"range\"").count(), 2);
    let best: Vec<f64> = page
        .split("class=\"best\" cx=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    // Half as slow again is far to the right of the middle, which is no difference.
    assert!(best[0] > 140.0 && (best[1] - 80.0).abs() < 0.1, "{best:?}");
    assert!(page.contains("not made in random pairs") && !page.contains("Lifecycles"));
}
