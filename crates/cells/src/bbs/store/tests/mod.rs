//! The same on both databases: what was written is what is read.

use std::collections::BTreeMap;
use std::time::Duration;

use diego::locket::Resource;
use diego::models::*;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::bbs::apply::{Command, Transaction, Watched};
use crate::bbs::model::Context;
use crate::bbs::presence::Change;
use crate::bbs::state::{Batch, Overlay};

#[path = "../../../../../commit/src/postgres/cluster.rs"]
mod cluster;
mod encrypted;

const COMMANDS: usize = 400;

/// What clients may call things.
const NAMES: [&str; 3] = ["a", "with a \0 in it", "\u{10ffff}'\"\\"];

fn command(random: &mut StdRng, now: i64) -> Command {
    let guid = format!("p{}", random.random_range(0..4));
    let task_guid = format!("t{}", random.random_range(0..4));
    let mut domain = NAMES[random.random_range(0..NAMES.len())].to_owned();
    if random.random_bool(0.2) {
        // More than an index takes.
        domain = domain.repeat(20_000);
    }
    let index = random.random_range(0..3);
    let instance = ActualLrpInstanceKey {
        instance_guid: format!("{guid}-{index}"),
        cell_id: "c".into(),
    };
    let key = ActualLrpKey {
        process_guid: guid.clone(),
        index,
        domain: domain.clone(),
    };
    let id = now;
    match random.random_range(0..10) {
        0 | 1 => Command::DesireLrp(
            Box::new(DesiredLrp {
                process_guid: guid,
                domain,
                instances: random.random_range(0..4),
                annotation: "x".repeat(random.random_range(0..5000)),
                ..DesiredLrp::default()
            }),
            "".into(),
        ),
        2 => Command::UpdateLrp(
            Box::new(UpdateDesiredLrpRequest {
                process_guid: guid,
                update: Some(DesiredLrpUpdate {
                    instances: Some(random.random_range(0..4)),
                    ..DesiredLrpUpdate::default()
                }),
            }),
            "".into(),
        ),
        3 => Command::RemoveLrp(guid, "".into()),
        4 | 5 => Command::Start(Box::new(StartActualLrpRequest {
            actual_lrp_key: Some(key),
            actual_lrp_instance_key: Some(instance),
            ..StartActualLrpRequest::default()
        })),
        6 => Command::Remove(RemoveActualLrpRequest {
            process_guid: guid,
            index,
            actual_lrp_instance_key: None,
        }),
        7 => Command::DesireTask(Box::new(DesireTaskRequest {
            task_guid,
            domain,
            task_definition: Some(TaskDefinition::default()),
        })),
        8 if random.random_bool(0.5) => Command::PruneDomains,
        8 => Command::UpsertDomain(UpsertDomainRequest {
            domain,
            ttl: random.random_range(1..50),
        }),
        _ => Command::Presences(vec![if random.random_bool(0.5) {
            Change::Held(StoredLock {
                id,
                resource: Resource {
                    key: domain.clone(),
                    owner: domain,
                    value: "\0".into(),
                    r#type: "presence".into(),
                    type_code: 2,
                },
                ttl: Duration::from_secs(15),
            })
        } else {
            Change::Gone(domain, id - random.random_range(0..3))
        }]),
    }
}

/// Does commands as one batch over a state.
fn batch(
    state: &State,
    names: &mut Names,
    next: &mut NextIds,
    commands: Vec<Command>,
    now: &mut i64,
) -> Overlay {
    let mut guids = 0;
    let mut new_guid = || {
        guids += 1;
        format!("g{guids}")
    };
    let mut transaction = Transaction {
        batch: Batch::new(state, names, next),
        context: Context {
            now: *now,
            new_guid: &mut new_guid,
        },
        task_retries_max: 3,
        watched: Watched {
            tasks: false,
            lrps: false,
        },
        changes: Vec::new(),
        work: Vec::new(),
    };
    for command in commands {
        *now += 1_000_000_000;
        transaction.context.now = *now;
        // Many are refused, as they come in any order.
        let _ = transaction.apply(command);
    }
    transaction.batch.into_overlay()
}

/// Everything that is kept, by name.
fn all(state: &State, presences: &[StoredLock]) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for (guid, task) in &state.tasks {
        all.insert(format!("task {guid} {}", task.id), task.bytes.to_vec());
    }
    for (guid, process) in &state.processes {
        if let Some(desired) = &process.desired {
            let bytes = [&desired.info[..], &desired.rest[..]].concat();
            let name = format!("desired {guid} {} {}", desired.id, desired.domain);
            all.insert(name, bytes);
        }
        for row in process.rows() {
            all.insert(format!("actual {guid} {}", row.id), row.bytes.to_vec());
        }
        if let Some(from) = process.stop_from {
            all.insert(format!("stop {guid} {from}"), Vec::new());
        }
    }
    for (domain, expires) in &state.domains {
        all.insert(format!("domain {domain} {expires}"), Vec::new());
    }
    for kept in presences {
        all.insert(format!("presence {kept:?}"), Vec::new());
    }
    all
}

async fn read(store: &mut Store) -> BTreeMap<String, Vec<u8>> {
    let (state, _) = store.load(&mut Names::default()).await.unwrap();
    all(&state, &store.presences().await.unwrap())
}

#[tokio::test]
async fn both_databases_have_what_was_written_whatever_it_is() {
    written_is_read(None).await;
}

#[tokio::test]
async fn both_databases_have_what_was_written_encrypted_whatever_it_is() {
    written_is_read(Some(encrypted::keys("a", &["a"]))).await;
}

async fn written_is_read(keys: Option<EncryptionKeys>) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster::Cluster::start();
    let settings = PostgresSettings::at(&cluster.database("bbs")).unwrap();
    let mut stores = [
        Store::open(folder.path(), keys.clone()).unwrap(),
        Store::postgres(&settings, keys).unwrap(),
    ];
    for store in &mut stores {
        assert_eq!(store.connect().await.unwrap(), Found::First);
        store.unlock().await.unwrap();
    }
    let (mut state, mut next) = (State::default(), NextIds::default());
    let (mut names, mut now) = (Names::default(), 1_000_000_000_000);
    let mut presences: BTreeMap<String, StoredLock> = BTreeMap::new();
    let (mut done, mut most) = (0, 0);
    while done < COMMANDS {
        let count = random.random_range(1..8);
        // A key is held under a greater number each time.
        let commands = (0..count).map(|at| command(&mut random, now + at));
        let commands: Vec<Command> = commands.collect();
        done += commands.len();
        let overlay = batch(&state, &mut names, &mut next, commands, &mut now);
        for store in &mut stores {
            store.commit(Writes::of(&state, &overlay)).await.unwrap();
        }
        for change in &overlay.presences {
            match change {
                Change::Held(kept) => {
                    presences.insert(kept.resource.key.clone(), kept.clone());
                }
                Change::Gone(key, id) => {
                    if presences.get(key).is_some_and(|kept| kept.id <= *id) {
                        presences.remove(key);
                    }
                }
            }
        }
        state.merge(overlay);
        let kept: Vec<StoredLock> = presences.values().cloned().collect();
        let expected = all(&state, &kept);
        most = most.max(expected.len());
        if random.random_bool(0.1) || done >= COMMANDS {
            for store in &mut stores {
                assert_eq!(read(store).await, expected);
            }
        }
    }
    assert!(most > 10, "only {most} rows");
}
