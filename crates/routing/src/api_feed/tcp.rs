//! TCP mappings for the TCP router.

use net::Shutdown;
use telemetry::Logger;
use tokio::sync::mpsc;

use super::WAITING;
use crate::table::Modification;
use crate::tcp::{Change, TcpMapping};
use routing_api::client::{ApiClient, ClientError, ClientSettings, FollowSettings, Update, follow};
use routing_api::model;

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
    let follow = follow::<model::TcpMapping>(&client, &follow_settings, &updates, &logger);
    let carry = async {
        while let Some(update) = news.recv().await {
            let Some(change) = change(update, &segments) else {
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
        () = shutdown.asked() => {}
    }
    Ok(())
}

fn change(update: Update<model::TcpMapping>, segments: &[String]) -> Option<Change> {
    let wanted = |mapping: &model::TcpMapping| {
        segments.is_empty() || segments.contains(&mapping.isolation_segment)
    };
    match update {
        Update::Full(all) => {
            let all = all.into_iter().filter(wanted);
            Some(Change::Full(all.map(TcpMapping::from).collect()))
        }
        Update::Upsert(one) => wanted(&one).then(|| Change::Upsert(one.into())),
        Update::Delete(one) => wanted(&one).then(|| Change::Delete(one.into())),
    }
}

impl From<model::TcpMapping> for TcpMapping {
    fn from(mapping: model::TcpMapping) -> Self {
        Self {
            router_group_guid: mapping.router_group_guid,
            port: mapping.port,
            backend_ip: mapping.backend_ip,
            backend_port: mapping.backend_port,
            // The server takes none that does not fit.
            backend_tls_port: i32::try_from(mapping.backend_tls_port).unwrap_or(-1),
            instance_id: mapping.instance_id,
            backend_sni_hostname: mapping.backend_sni_hostname,
            sni_rewrite_hostname: mapping.sni_rewrite_hostname,
            ttl: mapping.ttl.and_then(|ttl| u32::try_from(ttl).ok()),
            modification_tag: Modification {
                guid: mapping.modification_tag.guid.into(),
                index: mapping.modification_tag.index,
            },
            isolation_segment: mapping.isolation_segment,
            terminate_frontend_tls: mapping.terminate_frontend_tls,
            alpns: Some(mapping.alpns).filter(|alpns| !alpns.is_empty()),
            enable_backend_mtls: mapping.enable_backend_mtls,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_other_segments_are_left_out() {
        let mapping = |segment: &str| model::TcpMapping {
            isolation_segment: segment.into(),
            ..model::TcpMapping::default()
        };
        let full = || Update::Full(vec![mapping("a"), mapping("")]);
        let of = |segments: &[&str], update| {
            let segments: Vec<_> = segments.iter().map(|one| (*one).to_owned()).collect();
            change(update, &segments)
        };
        assert_eq!(
            of(&["a"], full()),
            Some(Change::Full(vec![mapping("a").into()]))
        );
        assert_eq!(
            of(&[], full()),
            Some(Change::Full(vec![mapping("a").into(), mapping("").into()]))
        );
        assert_eq!(of(&["a"], Update::Upsert(mapping(""))), None);
        assert_eq!(
            of(&["a", ""], Update::Delete(mapping(""))),
            Some(Change::Delete(mapping("").into()))
        );
    }
}
