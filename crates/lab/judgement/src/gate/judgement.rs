//! What a gate says, as data.

use serde::{Deserialize, Serialize};
use stats::{holm, sign_flip, signed_rank};

use super::{Gate, Measured, Next};
use crate::Metric;
use crate::pairs::Missing;
use crate::verdict::{Effect, Needs, Verdict, median};

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateJudgement {
    /// Worse if one metric is, not worse if all are not.
    pub verdict: Verdict,
    /// Pairs that were tried.
    pub pairs: usize,
    /// The budget.
    pub pairs_most: usize,
    /// Whether the budget ended before a decision.
    pub budget_spent: bool,
    /// Each metric, in the order of the settings.
    pub metrics: Vec<MetricJudgement>,
    /// The verdict in a sentence.
    pub sentence: String,
}

/// What a gate says of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricJudgement {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// The share of the base that it may be worse by.
    pub limit_share: f64,
    /// What can be said.
    pub verdict: Verdict,
    /// Pairs in which both had a value.
    pub pairs: usize,
    /// Those in which one had none.
    pub missing: Missing,
    /// Median of the base's values in these pairs.
    pub base_median: Option<f64>,
    /// The same of the new program.
    pub new_median: Option<f64>,
    /// By how much it is worse, at the look that decided or the last one; the lower end of the
    /// interval is one that holds for all metrics and looks together.
    pub effect: Option<Effect>,
    /// The smallest slowdown that pairs as many and as noisy as these would have shown, with
    /// the power of the settings.
    pub detectable_share: Option<f64>,
    /// Of Wilcoxon's signed-rank test, as if all pairs had been looked at once.
    pub signed_rank_p_value: Option<f64>,
    /// The same, adjusted for the number of metrics.
    pub signed_rank_p_value_holm: Option<f64>,
    /// Of the permutation test of signs.
    pub sign_flip_p_value: Option<f64>,
    /// What would settle it, when nothing can be told.
    pub needs: Option<Needs>,
    /// All of this in a sentence.
    pub sentence: String,
}

impl Gate {
    /// What can be said so far; final once [`Gate::next`] asks for no more pairs.
    #[must_use]
    pub fn judgement(&self) -> GateJudgement {
        let mut metrics: Vec<MetricJudgement> =
            (0..self.measured.len()).map(|at| self.metric(at)).collect();
        let p_values: Vec<f64> = metrics
            .iter()
            .map(|metric| metric.signed_rank_p_value.unwrap_or(1.0))
            .collect();
        for (metric, adjusted) in metrics.iter_mut().zip(holm(&p_values)) {
            metric.signed_rank_p_value_holm = metric.signed_rank_p_value.and(Some(adjusted));
            metric.sentence = metric.in_words();
        }
        let mut judgement = GateJudgement {
            verdict: self.verdict(),
            pairs: self.tried,
            pairs_most: self.settings.pairs_most,
            budget_spent: self.next() == Next::BudgetSpent,
            metrics,
            sentence: String::new(),
        };
        judgement.sentence = judgement.in_words();
        judgement
    }

    /// The fewest pairs that have an interval at the last look: all signs alike have a chance of
    /// one in two to the power of their number.
    fn pairs_least(&self) -> usize {
        let tail = self.tails[0].last().copied().unwrap_or_default();
        (-tail.max(f64::MIN_POSITIVE).log2()).ceil() as usize
    }

    fn metric(&self, at: usize) -> MetricJudgement {
        let (gated, measured) = (&self.settings.metrics[at], &self.measured[at]);
        let direction = gated.metric.direction;
        let limit = direction.logarithm(gated.limit_share);
        let verdict = measured.concluded.unwrap_or(Verdict::CannotTell);
        let pairs = measured.worse_by.len();
        let evidence = measured.evidence;
        let needs = match evidence {
            _ if verdict != Verdict::CannotTell => None,
            Some(evidence) => evidence.needs(limit, pairs, self.pairs_least(), direction),
            None => Some(Needs::of_runs(self.pairs_least().max(pairs + 1))),
        };
        let detectable = evidence.and_then(|evidence| evidence.detectable);
        MetricJudgement {
            metric: gated.metric.clone(),
            limit_share: gated.limit_share,
            verdict,
            pairs,
            missing: measured.missing,
            base_median: median(&measured.base),
            new_median: median(&measured.new),
            effect: evidence.map(|evidence| evidence.effect(direction)),
            detectable_share: detectable.map(|worse_by| direction.share(worse_by)),
            signed_rank_p_value: measured.signed_rank_p_value(),
            signed_rank_p_value_holm: None,
            sign_flip_p_value: sign_flip(&measured.worse_by, self.settings.seed),
            needs,
            sentence: String::new(),
        }
    }
}

impl Measured {
    /// 1 when all pairs are equal.
    fn signed_rank_p_value(&self) -> Option<f64> {
        let found = signed_rank(&self.worse_by).map(|found| found.p_value);
        found.or_else(|| (!self.worse_by.is_empty()).then_some(1.0))
    }
}
