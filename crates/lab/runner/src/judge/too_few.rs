//! Shares of failures that so few requests cannot tell.

use lab_experiment::expr::{Comparison, Expr, LoadQuantity, Metric, Metrics};
use units::{counted, show_share};

use super::Measured;

/// One failure among requests of which none failed.
struct OneFailed<'m> {
    measured: &'m Measured<'m>,
    of: &'m Metric,
    share: f64,
}

impl Metrics for OneFailed<'_> {
    fn value(&self, metric: &Metric) -> Option<f64> {
        match metric == self.of {
            true => Some(self.share),
            false => self.measured.value(metric),
        }
    }
}

impl Measured<'_> {
    /// Why an expression that holds or not is undecided nevertheless: no request failed, and a share
    /// below that of one, as it could be the target's, would decide otherwise. The same rule as that of
    /// an objective: `errors < 1%` needs a hundred requests.
    pub(super) fn too_few(&self, expr: &Expr, held: bool) -> Option<String> {
        expr.comparisons().into_iter().find_map(|comparison| {
            let (tried, share) = self.below_one(comparison)?;
            let one_failed = OneFailed {
                measured: self,
                of: &comparison.metric,
                share,
            };
            (expr.eval(&one_failed).holds != Some(held)).then(|| {
                let requests = counted(tried, "request", "requests");
                let one = show_share(1.0 / tried as f64);
                format!(
                    "too few requests to tell {}: none of {requests} failed, and one would be {one}",
                    comparison.metric
                )
            })
        })
    }

    /// Of how many requests none failed, where a comparison asks for a share that is neither none nor
    /// all; and the largest value of its metric at which less than one of them would have failed.
    fn below_one(&self, comparison: &Comparison) -> Option<(u64, f64)> {
        let Metric::Load { quantity, .. } = &comparison.metric else {
            return None;
        };
        let is_share = comparison.of.is_none() && comparison.quantity > 0.0;
        let asked = match quantity {
            LoadQuantity::Errors => comparison.quantity,
            LoadQuantity::Ok => 1.0 - comparison.quantity,
            _ => return None,
        };
        let requests = &self.summary(&comparison.metric)?.requests;
        if !is_share || asked <= 0.0 || requests.tried == 0 || requests.failed > 0 {
            return None;
        }
        // Just below one request: a bound that is one request's share is told.
        let share = (1.0 - 1e-9) / requests.tried as f64;
        Some((
            requests.tried,
            match quantity {
                LoadQuantity::Ok => 1.0 - share,
                _ => share,
            },
        ))
    }
}
