//! Encrypts with the active key what is not, in the background.

use std::sync::Arc;
use std::time::{Duration, Instant};

use telemetry::{Fields, Logger};

use super::ledger::Commands;
use super::metrics::Metrics;

/// Time until a step that failed is tried again; it doubles each time.
const AGAIN_FIRST: Duration = Duration::from_millis(500);
/// Most time until then.
const AGAIN_MOST: Duration = Duration::from_secs(30);

/// Goes on until nothing in the store needs another key any more. The writer has at least half of its
/// time for others.
pub(super) async fn rotate(commands: Commands, metrics: Arc<Metrics>, logger: Logger) {
    let begin = commands.look(|ledger| {
        let store = &ledger.store;
        let label = store.active_key().unwrap_or_default().to_owned();
        let begin = (store.is_to_reencrypt(), store.rows_to_reencrypt(), label);
        Box::pin(async move { begin })
    });
    let Some((true, left, label)) = begin.await else {
        metrics.reencrypting.set(false);
        return;
    };
    metrics.rows_to_reencrypt.set(left);
    let fields = Fields::new().and("key", &label).and("rows", left);
    logger.info("reencryption-started", fields);
    let (start, mut rows, mut again) = (Instant::now(), 0, AGAIN_FIRST);
    loop {
        let began = Instant::now();
        let step = commands.look(|ledger| Box::pin(ledger.store.reencrypt()));
        match step.await {
            // The BBS ends; the next one goes on.
            None => return,
            Some(Ok(step)) => {
                again = AGAIN_FIRST;
                rows += step.rows;
                metrics.reencrypted_rows.add(step.rows as usize);
                metrics.rows_to_reencrypt.set(step.left);
                if step.done {
                    break;
                }
                tokio::time::sleep(began.elapsed()).await;
            }
            Some(Err(error)) => {
                logger.error("reencryption-failed", &error, Fields::new());
                tokio::time::sleep(again).await;
                again = (again * 2).min(AGAIN_MOST);
            }
        }
    }
    metrics.reencrypting.set(false);
    let fields = Fields::new().and("key", &label).and("rows", rows);
    let milliseconds = start.elapsed().as_millis() as u64;
    logger.info(
        "reencryption-done",
        fields.and("milliseconds", milliseconds),
    );
}
