//! TCP mappings for the TCP router.

use net::Shutdown;
use telemetry::Logger;
use tokio::sync::mpsc;

use super::WAITING;
use crate::tcp::{Change, TcpMapping};
use routing_api::client::{ApiClient, ClientError, ClientSettings, FollowSettings, follow};

/// Tells a TCP router what the routing API says, until `shutdown` or until the router goes
/// away. Mappings of other isolation segments than these are left out; none named: all are
/// told.
///
/// # Errors
/// When the settings cannot be used. What goes wrong later is logged and tried again.
pub async fn run(
    settings: &ClientSettings,
    segments: Vec<String>,
    changes: mpsc::Sender<Change>,
    logger: Logger,
    mut shutdown: Shutdown,
) -> Result<(), ClientError> {
    let client = ApiClient::new(settings)?;
    let (updates, mut news) = mpsc::channel(WAITING);
    let follow_settings = FollowSettings::default();
    let follow = follow(&client, &follow_settings, &updates, &logger);
    let carry = async {
        while let Some(change) = news.recv().await {
            let Some(change) = within(change, &segments) else {
                continue;
            };
            if changes.send(change).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = follow => {}
        () = carry => {}
        () = shutdown.requested() => {}
    }
    Ok(())
}

/// What of a change is about these isolation segments.
fn within(mut change: Change, segments: &[String]) -> Option<Change> {
    let wanted =
        |mapping: &TcpMapping| segments.is_empty() || segments.contains(&mapping.isolation_segment);
    let told = match &mut change {
        Change::Full(all) => {
            all.retain(wanted);
            true
        }
        Change::Upsert(one) | Change::Delete(one) => wanted(one),
    };
    told.then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_other_segments_are_left_out() {
        let mapping = |segment: &str| TcpMapping {
            isolation_segment: segment.into(),
            ..TcpMapping::default()
        };
        let full = || Change::Full(vec![mapping("a"), mapping("")]);
        let of = |segments: &[&str], change| {
            let segments: Vec<_> = segments.iter().map(|one| (*one).to_owned()).collect();
            within(change, &segments)
        };
        assert_eq!(of(&["a"], full()), Some(Change::Full(vec![mapping("a")])));
        assert_eq!(of(&[], full()), Some(full()));
        assert_eq!(of(&["a"], Change::Upsert(mapping(""))), None);
        let gone = Change::Delete(mapping(""));
        assert_eq!(of(&["a", ""], gone.clone()), Some(gone));
    }
}
