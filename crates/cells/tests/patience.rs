//! Waiting for what must come about.

use std::time::Duration;

/// Longest wait, also on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
pub(crate) async fn until_some<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    waited.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Asks until it holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    until_some(what, async || holds().await.then_some(())).await;
}
