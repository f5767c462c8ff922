//! The tries of probes as the page takes them: lines over time, and texts that changed.

use std::collections::BTreeMap;

use lab_store::{ProbeSample, ProbeSummary};
use serde::Serialize;

use crate::blob::Blob;
use crate::page_data::Named;
use crate::series::{Line, pack};

/// Changes of a text that are listed of a probe.
const TEXTS: usize = 50;
/// What numbers that were answered keep at least, and of the least of them as a share.
const FINEST: f64 = 1e-6;

/// One probe.
#[derive(Debug, Serialize)]
pub(crate) struct PageProbe {
    name: String,
    /// What each copy that it asks came to.
    summaries: Vec<ProbeSummary>,
    /// Latency of the tries that went well, in seconds.
    answered: Line,
    /// How long was waited for those that failed, in seconds.
    failed: Line,
    /// Numbers that were answered, by the name of the copy; empty for one that asks once.
    values: Vec<Named>,
    /// Texts that were answered, when they changed.
    texts: Vec<Text>,
    /// How many more changes there were.
    more_texts: usize,
}

/// A text that was answered first at this time.
#[derive(Debug, Serialize)]
struct Text {
    t_s: f64,
    of: String,
    text: String,
}

/// Tries in order of time, by probe and copy.
type Tries<'s> = BTreeMap<(&'s str, &'s str), Vec<&'s ProbeSample>>;

/// What probes have come to by these tries, of a run that goes on; in the order of the
/// probes' names.
pub(crate) fn summaries_so_far(tries: &[ProbeSample]) -> Vec<ProbeSummary> {
    let mut summaries: BTreeMap<(&str, &str), ProbeSummary> = BTreeMap::new();
    for one in tries {
        let summary = summaries.entry((&one.probe, &one.of)).or_default();
        summary.tries += 1;
        summary.skipped += one.skipped;
        if !one.is_ok() {
            summary.failed += 1;
            summary.error.clone_from(&one.error);
        }
    }
    let named = summaries
        .into_iter()
        .map(|((name, of), summary)| ProbeSummary {
            name: name.to_owned(),
            of: of.to_owned(),
            ..summary
        });
    named.collect()
}

/// The probes of a run, in the order of their summaries.
pub(crate) fn probes(
    samples: &[ProbeSample],
    summaries: &[ProbeSummary],
    blob: &mut Blob,
) -> Vec<PageProbe> {
    let mut tries = Tries::new();
    for one in samples {
        tries.entry((&one.probe, &one.of)).or_default().push(one);
    }
    let mut copies: Vec<Vec<&ProbeSummary>> = Vec::new();
    for summary in summaries {
        match copies.last_mut() {
            Some(own) if own[0].name == summary.name => own.push(summary),
            _ => copies.push(vec![summary]),
        }
    }
    copies
        .into_iter()
        .map(|copies| probe(&copies, &tries, blob))
        .collect()
}

/// One probe, of which these are the summaries.
fn probe<'s>(copies: &[&'s ProbeSummary], tries: &Tries<'s>, blob: &mut Blob) -> PageProbe {
    let of = |summary: &&'s ProbeSummary| {
        let own = tries.get(&(&*summary.name, &*summary.of));
        own.map(Vec::as_slice).unwrap_or_default()
    };
    let mut all: Vec<&ProbeSample> = copies.iter().flat_map(of).copied().collect();
    all.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    let mut latency = |is_ok: bool| {
        let own = all.iter().filter(|one| one.is_ok() == is_ok);
        let points: Vec<(f64, f64)> = own.map(|one| (one.t_s, one.latency_s)).collect();
        pack(blob, &points, 1e-6)
    };
    let (answered, failed) = (latency(true), latency(false));
    let values = copies.iter().filter_map(|summary| {
        let points = of(summary).iter();
        let points = points.filter_map(|one| Some((one.t_s, one.value?)));
        let points: Vec<(f64, f64)> = points.collect();
        (!points.is_empty()).then(|| Named {
            name: summary.of.clone(),
            line: pack(blob, &points, finest(&points)),
        })
    });
    let values = values.collect();
    let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
    let changes = all.iter().filter(|one| !one.text.is_empty());
    let mut texts: Vec<Text> = changes
        .filter(|one| newest.insert(&one.of, &one.text) != Some(&*one.text))
        .map(|one| Text {
            t_s: one.t_s,
            of: one.of.clone(),
            text: one.text.clone(),
        })
        .collect();
    let more_texts = texts.len().saturating_sub(TEXTS);
    texts.truncate(TEXTS);
    PageProbe {
        name: copies
            .first()
            .map(|one| one.name.clone())
            .unwrap_or_default(),
        summaries: copies.iter().copied().cloned().collect(),
        answered,
        failed,
        values,
        texts,
        more_texts,
    }
}

/// How much of numbers whose unit nobody knows is kept: six digits, also of those far below one.
fn finest(points: &[(f64, f64)]) -> f64 {
    let sizes = points.iter().map(|(_, value)| value.abs());
    let least = sizes.filter(|size| *size > 0.0).fold(1.0, f64::min);
    (least * FINEST).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_far_below_one_keep_their_digits() {
        let points = [(0.0, 4e-7), (1.0, 9e-7), (2.0, 0.0), (3.0, -3e-7)];
        let line = pack(&mut Blob::default(), &points, finest(&points));
        assert!(line.v.unit < 1e-12, "{}", line.v.unit);
        for usual in [&[(0.0, 1.0), (1.0, 2500.0)][..], &[(0.0, 0.0)], &[]] {
            assert_eq!(finest(usual), FINEST);
        }
        let lost = [(0.0, f64::NAN), (1.0, f64::MIN_POSITIVE)];
        assert_eq!(finest(&lost), f64::MIN_POSITIVE);
    }

    #[test]
    fn a_probe_of_two_copies_has_a_line_for_each_and_its_texts_when_they_change() {
        let one = |t_s: f64, of: &str, value: Option<f64>, text: &str, error: &str| ProbeSample {
            t_s,
            probe: "p".into(),
            of: of.into(),
            value,
            text: text.into(),
            error: error.into(),
            ..ProbeSample::default()
        };
        let samples = [
            one(0.0, "a.0", Some(1.0), "", ""),
            one(0.1, "a.1", None, "x", ""),
            one(1.0, "a.0", Some(2.0), "", ""),
            one(1.1, "a.1", None, "x", ""),
            one(2.0, "a.0", None, "", "refused"),
            one(2.1, "a.1", None, "y", ""),
        ];
        let summary = |name: &str, of: &str| ProbeSummary {
            name: name.into(),
            of: of.into(),
            ..ProbeSummary::default()
        };
        let summaries = [
            summary("p", "a.0"),
            summary("p", "a.1"),
            summary("never", ""),
        ];
        let found = probes(&samples, &summaries, &mut Blob::default());
        assert_eq!(found.len(), 2);
        let p = &found[0];
        assert_eq!((p.answered.t.column.n, p.failed.t.column.n), (5, 1));
        let values: Vec<_> = p
            .values
            .iter()
            .map(|line| (&*line.name, line.line.v.column.n))
            .collect();
        assert_eq!(values, [("a.0", 2)]);
        let texts: Vec<_> = p.texts.iter().map(|text| (text.t_s, &*text.text)).collect();
        assert_eq!(texts, [(0.1, "x"), (2.1, "y")]);
        assert_eq!(
            (found[1].answered.t.column.n, found[1].values.len()),
            (0, 0)
        );
    }
}
