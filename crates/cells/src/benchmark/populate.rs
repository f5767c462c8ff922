//! Processes with one running instance each, on reps that hold their presences.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use diego::locket::{Resource, TypeCode};
use diego::models::{self, ActualLrpInstanceKey, ActualLrpKey, ActualLrpLifecycleResponse};
use diego::{Bbs, path};
use net::Client;
use tokio::task::JoinSet;

use super::{BenchmarkError, Options};
use crate::locket_client::LocketClient;

/// The domain of everything that is made.
const DOMAIN: &str = "benchmark-bbs";
/// Bytes that pad the routes of a process, so that its scheduling info has the 1.27 KB that
/// published scale tests had.
const PADDING: usize = 980;
/// How long a presence lives that nobody renews: longer than any benchmark.
const PRESENT_FOR: Duration = Duration::from_secs(24 * 3600);
const POPULATING: &str = "fill the BBS";

/// The id of a rep's cell.
pub(super) fn cell(rep: u32) -> String {
    format!("benchmark-cell-{rep}")
}

/// Fills the BBS; says how long that took.
pub(super) async fn populate(
    bbs: &Bbs,
    client: &Client,
    options: &Options,
) -> Result<Duration, BenchmarkError> {
    let start = Instant::now();
    let fresh = models::UpsertDomainRequest {
        domain: DOMAIN.to_owned(),
        ttl: 0,
    };
    let upserted = bbs.call::<models::UpsertDomainResponse>(path::UPSERT_DOMAIN, &fresh);
    upserted.await.map_err(failed(POPULATING))?;
    let locket = Arc::new(locket(client, options));
    each(options.reps, options.in_flight, move |rep| {
        let locket = Arc::clone(&locket);
        async move {
            let taken = locket.lock(presence(rep), PRESENT_FOR).await;
            taken.map_err(|cause| BenchmarkError::Presence {
                cell: cell(rep),
                cause: cause.to_string(),
            })
        }
    })
    .await?;
    let (bbs, reps) = (bbs.clone(), options.reps);
    each(options.processes, options.in_flight, move |number| {
        let bbs = bbs.clone();
        async move { place(&bbs, number, number % reps).await }
    })
    .await?;
    Ok(start.elapsed())
}

/// Gives the presences up. What was made stays.
pub(super) async fn leave(client: &Client, options: &Options) -> Result<(), BenchmarkError> {
    let locket = Arc::new(locket(client, options));
    each(options.reps, options.in_flight, move |rep| {
        let locket = Arc::clone(&locket);
        async move {
            let released = locket.release(presence(rep)).await;
            released.map_err(|cause| BenchmarkError::Presence {
                cell: cell(rep),
                cause: cause.to_string(),
            })
        }
    })
    .await
}

/// Does pieces of work by their number, so many at once; the first error ends all.
async fn each<F, R>(count: u32, at_once: u32, work: F) -> Result<(), BenchmarkError>
where
    F: Fn(u32) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), BenchmarkError>> + Send + 'static,
{
    let (work, next) = (Arc::new(work), Arc::new(AtomicU32::new(0)));
    let mut workers = JoinSet::new();
    for _ in 0..at_once.min(count) {
        let (work, next) = (Arc::clone(&work), Arc::clone(&next));
        workers.spawn(net::boxed(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<(), BenchmarkError>(());
                }
                work(number).await?;
            }
        }));
    }
    while let Some(ended) = workers.join_next().await {
        ended.map_err(|cause| BenchmarkError::Task {
            doing: POPULATING,
            cause,
        })??;
    }
    Ok(())
}

fn locket(client: &Client, options: &Options) -> LocketClient {
    LocketClient {
        client: client.clone(),
        base: options.bbs.trim_end_matches('/').to_owned(),
        holder: "benchmark",
    }
}

fn presence(rep: u32) -> Resource {
    let cell = cell(rep);
    // Nobody calls it: nothing is auctioned, and nothing ends.
    let value = serde_json::json!({
        "cell_id": cell,
        "rep_address": "http://127.0.0.1:1",
        "zone": "z1",
        "capacity": { "memory_mb": 1 << 20, "disk_mb": 1 << 20, "containers": 1 << 20 },
        "rootfs_provider_list": [],
        "rep_url": "",
    });
    Resource {
        key: cell,
        owner: "benchmark".to_owned(),
        value: value.to_string(),
        r#type: "presence".to_owned(),
        type_code: TypeCode::Presence.into(),
    }
}

/// A process whose instance runs.
async fn place(bbs: &Bbs, number: u32, rep: u32) -> Result<(), BenchmarkError> {
    let desired = desired(number);
    let key = ActualLrpKey {
        process_guid: desired.process_guid.clone(),
        index: 0,
        domain: DOMAIN.to_owned(),
    };
    let instance = ActualLrpInstanceKey {
        instance_guid: format!("BENCHMARK-BBS-INSTANCE-{number:07}"),
        cell_id: cell(rep),
    };
    let desire = models::DesireLrpRequest {
        desired_lrp: Some(desired),
    };
    let desired = bbs.call::<models::DesiredLrpLifecycleResponse>(path::DESIRE_LRP, &desire);
    desired.await.map_err(failed(POPULATING))?;
    let claimed = claim(bbs, key.clone(), instance.clone()).await;
    claimed.map_err(failed(POPULATING))?;
    let started = start(bbs, key, instance).await;
    started.map_err(failed(POPULATING))
}

/// Says that a rep has taken an instance.
pub(super) async fn claim(
    bbs: &Bbs,
    key: ActualLrpKey,
    instance: ActualLrpInstanceKey,
) -> Result<(), diego::CallError> {
    let request = models::ClaimActualLrpRequest {
        process_guid: key.process_guid,
        index: key.index,
        actual_lrp_instance_key: Some(instance),
    };
    let claimed = bbs.call::<ActualLrpLifecycleResponse>(path::CLAIM_ACTUAL_LRP, &request);
    claimed.await.map(drop)
}

/// Says that an instance runs, always at the same addresses.
pub(super) async fn start(
    bbs: &Bbs,
    key: ActualLrpKey,
    instance: ActualLrpInstanceKey,
) -> Result<(), diego::CallError> {
    let port = models::PortMapping {
        container_port: 8080,
        host_port: 61_999,
        ..models::PortMapping::default()
    };
    let request = models::StartActualLrpRequest {
        actual_lrp_key: Some(key),
        actual_lrp_instance_key: Some(instance),
        actual_lrp_net_info: Some(models::ActualLrpNetInfo {
            address: "1.2.3.4".to_owned(),
            instance_address: "2.2.2.2".to_owned(),
            ports: vec![port],
            ..models::ActualLrpNetInfo::default()
        }),
        routable: Some(true),
        ..models::StartActualLrpRequest::default()
    };
    let started = bbs.call::<ActualLrpLifecycleResponse>(path::START_ACTUAL_LRP, &request);
    started.await.map(drop)
}

/// What a failed call becomes.
pub(super) fn failed(doing: &'static str) -> impl Fn(diego::CallError) -> BenchmarkError {
    move |cause| BenchmarkError::Call { doing, cause }
}

fn desired(number: u32) -> models::DesiredLrp {
    let guid = format!("BENCHMARK-BBS-GUID-{number:07}");
    let padding = "x".repeat(PADDING);
    let routes = format!(
        r#"[{{"hostnames":["{guid}.apps.example.com"],"port":8080,"padding":"{padding}"}}]"#
    );
    let tag = models::MetricTagValue {
        r#static: guid.clone(),
        ..models::MetricTagValue::default()
    };
    let run = models::RunAction {
        path: "/bin/sleep".to_owned(),
        args: vec!["86400".to_owned()],
        user: "vcap".to_owned(),
        ..models::RunAction::default()
    };
    models::DesiredLrp {
        process_guid: guid.clone(),
        domain: DOMAIN.to_owned(),
        root_fs: "preloaded:cflinuxfs4".to_owned(),
        instances: 1,
        memory_mb: 128,
        disk_mb: 256,
        log_guid: guid,
        action: Some(models::Action::from(run)),
        routes: Some(models::ProtoRoutes {
            routes: BTreeMap::from([("cf-router".to_owned(), routes.into_bytes())]),
        }),
        metric_tags: BTreeMap::from([("source_id".to_owned(), tag)]),
        ..models::DesiredLrp::default()
    }
}
