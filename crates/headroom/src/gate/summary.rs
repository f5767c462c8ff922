//! What a gate says, for people and as JSON.

use anyhow::Result;
use console::style;
use lab_judgement::{GateJudgement, Verdict};
use serde::{Deserialize, Serialize};

use super::pairs::Decided;
use crate::output::{self, eprint};

/// Most failures of runs that are told; the JSON has all.
const FAILURES_SHOWN: usize = 3;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// The JSON of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GateReport {
    pub(crate) schema: u32,
    /// What ran as the base.
    pub(crate) base: String,
    /// What ran as the new one.
    pub(crate) new: String,
    #[serde(flatten)]
    pub(crate) decided: Decided,
}

pub(crate) fn json(decided: &Decided, base: &str, new: &str) -> Result<String> {
    output::json(&GateReport {
        schema: SCHEMA,
        base: base.to_owned(),
        new: new.to_owned(),
        decided: decided.clone(),
    })
}

/// A sentence for each metric, then the verdict.
pub(crate) fn text(decided: &Decided) -> String {
    let judgement = &decided.judgement;
    let mut text: String = judgement
        .metrics
        .iter()
        .map(|metric| format!("{}\n", metric.sentence))
        .collect();
    for failure in decided.failures.iter().take(FAILURES_SHOWN) {
        let (side, pair) = (failure.side.word(), failure.pair);
        text += &format!("\n{side} in pair {pair}: {}\n", failure.text);
    }
    let ending = verdict_word(judgement.verdict, &judgement.sentence);
    text + &format!("\n{ending}\n")
}

/// A verdict with what follows it in its sentence: "WORSE  after 8 pairs: cpu".
pub(crate) fn verdict_word(verdict: Verdict, sentence: &str) -> String {
    let plain = verdict.in_words();
    let word = style(plain.to_uppercase());
    let word = match verdict {
        Verdict::Worse => word.red(),
        Verdict::NotWorse => word.green(),
        Verdict::CannotTell => word.yellow(),
    };
    let rest = sentence.strip_prefix(plain).unwrap_or(sentence);
    let rest = rest.trim_start_matches([',', ':', ' ']);
    format!("{}  {rest}", word.bold()).trim_end().to_owned()
}

/// How it stands after a look that decided nothing.
pub(crate) fn look(judgement: &GateJudgement, more: usize) {
    eprint(format_args!(
        "headroom: after {} of at most {} pairs it is open; {more} more",
        judgement.pairs, judgement.pairs_most
    ));
}
