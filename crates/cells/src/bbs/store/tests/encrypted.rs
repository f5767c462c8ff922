//! Values are encrypted, and encrypted anew, the same on both databases.

use std::collections::BTreeSet;

use super::*;

/// What is planted in every value.
const SECRET: &str = "planted-where-nobody-may-see-it";

/// Keys of these labels, each another one, of which one is active.
pub(super) fn keys(active: &str, labels: &[&str]) -> EncryptionKeys {
    let keys = labels
        .iter()
        .map(|label| format!(r#""{label}":"passphrase of {label}""#));
    let keys: Vec<String> = keys.collect();
    let keys = keys.join(",");
    let file = format!(r#"{{"active_key_label":"{active}","encryption_keys":{{{keys}}}}}"#);
    EncryptionKeys::parse(file.as_bytes()).unwrap()
}

/// A database that is opened again and again.
#[allow(clippy::large_enum_variant, reason = "there are two of them")]
enum Place {
    Sqlite(tempfile::TempDir),
    Postgres(cluster::Cluster, PostgresSettings),
}

impl Place {
    fn both() -> [Self; 2] {
        let cluster = cluster::Cluster::start();
        let settings = PostgresSettings::at(&cluster.database("bbs")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        [Self::Sqlite(folder), Self::Postgres(cluster, settings)]
    }

    async fn open(&self, keys: Option<EncryptionKeys>) -> Result<Store, crate::bbs::Error> {
        let mut store = match self {
            Self::Sqlite(folder) => Store::open(folder.path(), keys)?,
            Self::Postgres(_, settings) => Store::postgres(settings, keys)?,
        };
        // The server may notice a moment later that the one before is gone.
        while let Err(error) = store.connect().await {
            assert!(matches!(error, StoreError::Locked { .. }), "{error}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        store.unlock().await?;
        Ok(store)
    }

    async fn refusal(&self, keys: Option<EncryptionKeys>) -> String {
        match self.open(keys).await {
            Ok(_) => panic!("it was opened"),
            Err(error) => error.to_string(),
        }
    }

    /// Is the secret to be seen: in the files of SQLite, in rows of PostgreSQL?
    fn shows_secret(&self) -> bool {
        match self {
            Self::Sqlite(folder) => {
                let files = std::fs::read_dir(folder.path()).unwrap();
                files.into_iter().any(|file| {
                    let bytes = std::fs::read(file.unwrap().path()).unwrap();
                    let mut windows = bytes.windows(SECRET.len());
                    windows.any(|window| window == SECRET.as_bytes())
                })
            }
            Self::Postgres(cluster, _) => {
                let values = [
                    ("bbs_tasks", "record"),
                    ("bbs_desired_lrps", "info"),
                    ("bbs_desired_lrps", "rest"),
                    ("bbs_actual_lrps", "record"),
                    ("bbs_presences", "value"),
                ];
                values.iter().any(|(table, column)| {
                    let query = format!(
                        "SELECT count(*) FROM {table} WHERE position('{SECRET}'::bytea IN {column}) > 0"
                    );
                    let found = cluster.psql("bbs", &query);
                    assert!(found.status.success(), "{found:?}");
                    String::from_utf8_lossy(&found.stdout).trim() != "0"
                })
            }
        }
    }
}

/// Commands that plant the secret in values of every kind.
fn planting(from: usize, count: usize) -> Vec<Command> {
    let secret = || SECRET.to_owned();
    let mut commands = Vec::new();
    for number in from..from + count {
        let guid = format!("p{number}");
        commands.push(Command::DesireTask(Box::new(DesireTaskRequest {
            task_guid: guid.clone(),
            domain: "d".into(),
            task_definition: Some(TaskDefinition {
                annotation: secret(),
                ..TaskDefinition::default()
            }),
        })));
        let desired = DesiredLrp {
            process_guid: guid.clone(),
            domain: "d".into(),
            instances: 1,
            annotation: secret(),
            log_source: secret(),
            ..DesiredLrp::default()
        };
        commands.push(Command::DesireLrp(Box::new(desired), "".into()));
        commands.push(Command::Start(Box::new(StartActualLrpRequest {
            actual_lrp_key: Some(ActualLrpKey {
                process_guid: guid.clone(),
                index: 0,
                domain: "d".into(),
            }),
            actual_lrp_instance_key: Some(ActualLrpInstanceKey {
                instance_guid: guid.clone(),
                cell_id: "c".into(),
            }),
            actual_lrp_net_info: Some(ActualLrpNetInfo {
                address: secret(),
                ..ActualLrpNetInfo::default()
            }),
            ..StartActualLrpRequest::default()
        })));
        commands.push(Command::Presences(vec![Change::Held(StoredLock {
            id: 1 + number as i64,
            resource: Resource {
                key: guid,
                owner: "o".into(),
                value: secret(),
                r#type: "presence".into(),
                type_code: 2,
            },
            ttl: Duration::from_secs(15),
        })]));
    }
    commands
}

async fn plant(store: &mut Store, from: usize, count: usize) {
    let mut names = Names::default();
    let (state, mut next) = store.load(&mut names).await.unwrap();
    let mut now = 1_000_000_000_000;
    let overlay = batch(
        &state,
        &mut names,
        &mut next,
        planting(from, count),
        &mut now,
    );
    store.commit(Writes::of(&state, &overlay)).await.unwrap();
}

/// Encrypts anew until that is done, or so many steps; how many rows that were.
async fn walk(store: &mut Store, steps: usize) -> u64 {
    let mut rows = 0;
    for _ in 0..steps {
        let step = store.reencrypt().await.unwrap();
        rows += step.rows;
        if step.done {
            break;
        }
    }
    rows
}

#[tokio::test]
async fn values_are_encrypted_from_the_first_on_and_need_their_key() {
    for place in Place::both() {
        let mut store = place.open(Some(keys("a", &["a"]))).await.unwrap();
        plant(&mut store, 0, 20).await;
        assert!(!place.shows_secret());
        let expected = read(&mut store).await;
        assert!(format!("{expected:?}").contains("presence"));
        walk(&mut store, usize::MAX).await;
        assert_eq!(read(&mut store).await, expected);
        drop(store);
        assert!(!place.shows_secret());
        let refused = place.refusal(None).await;
        assert!(refused.contains("the key \"a\": start with"), "{refused}");
        let refused = place.refusal(Some(keys("b", &["b", "c"]))).await;
        assert!(refused.contains("the key \"a\", and"), "{refused}");
        let other = r#"{"active_key_label":"a","encryption_keys":{"a":"another"}}"#;
        let other = EncryptionKeys::parse(other.as_bytes()).unwrap();
        let refused = place.refusal(Some(other)).await;
        assert!(
            refused.contains("the key \"a\" of --encryption-keys is not"),
            "{refused}"
        );
        let mut store = place.open(Some(keys("a", &["a"]))).await.unwrap();
        assert!(!store.is_to_reencrypt());
        assert_eq!(read(&mut store).await, expected);
    }
}

#[tokio::test]
async fn a_change_of_keys_goes_on_where_it_was_cut_off() {
    const COUNT: usize = 600;
    for place in Place::both() {
        let mut store = place.open(None).await.unwrap();
        plant(&mut store, 0, COUNT).await;
        assert!(place.shows_secret());
        let expected = read(&mut store).await;
        drop(store);
        let mut before = None;
        for (active, labels) in [
            ("a", &["a"][..]),
            ("b", &["b", "a"][..]),
            ("c", &["c", "b"][..]),
        ] {
            let given = || Some(keys(active, labels));
            let mut done = 0;
            // Nothing but the rows themselves says how far it has come.
            for steps in [1, 2, 4, usize::MAX] {
                let mut store = place.open(given()).await.unwrap();
                assert!(store.is_to_reencrypt());
                assert_eq!(read(&mut store).await, expected);
                let left = 4 * COUNT as u64 - done;
                assert_eq!(store.rows_to_reencrypt(), left);
                done += walk(&mut store, steps).await;
                assert_eq!(read(&mut store).await, expected);
            }
            assert_eq!(done, 4 * COUNT as u64);
            assert!(!place.shows_secret());
            // The old one may go, and only this one is needed.
            let mut store = place.open(Some(keys(active, &[active]))).await.unwrap();
            assert!(!store.is_to_reencrypt());
            assert_eq!(read(&mut store).await, expected);
            drop(store);
            if let Some(before) = before.replace(active) {
                let refused = place.refusal(Some(keys(before, &[before]))).await;
                assert!(
                    refused.contains(&format!("the key {active:?}")),
                    "{refused}"
                );
            }
        }
    }
}

#[tokio::test]
async fn what_is_written_while_keys_change_needs_only_the_new_one() {
    for place in Place::both() {
        let mut store = place.open(Some(keys("a", &["a"]))).await.unwrap();
        plant(&mut store, 0, 300).await;
        walk(&mut store, usize::MAX).await;
        drop(store);
        let mut store = place.open(Some(keys("b", &["a", "b"]))).await.unwrap();
        let mut planted = 300;
        loop {
            plant(&mut store, planted, 7).await;
            planted += 7;
            if store.reencrypt().await.unwrap().done {
                break;
            }
        }
        let expected = read(&mut store).await;
        assert_eq!(expected.len(), 4 * planted);
        drop(store);
        let mut store = place.open(Some(keys("b", &["b"]))).await.unwrap();
        assert_eq!(read(&mut store).await, expected);
    }
}

#[tokio::test]
async fn no_two_stored_values_share_a_nonce() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Sqlite(folder);
    for round in 0..5 {
        let mut store = place.open(Some(keys("a", &["a"]))).await.unwrap();
        plant(&mut store, round * 50, 50).await;
    }
    let Place::Sqlite(folder) = &place else {
        unreachable!()
    };
    let database = rusqlite::Connection::open(folder.path().join("bbs.sqlite")).unwrap();
    let (mut seen, mut count) = (BTreeSet::new(), 0);
    for query in [
        "SELECT record FROM tasks UNION ALL SELECT record FROM actual_lrps",
        "SELECT info FROM desired_lrps UNION ALL SELECT rest FROM desired_lrps",
        "SELECT value FROM presences UNION ALL SELECT proof FROM encryption_keys WHERE label <> ''",
    ] {
        let mut statement = database.prepare(query).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let value: Vec<u8> = row.get(0).unwrap();
            // What the key was derived with, and the nonce under it.
            seen.insert(value[1..29].to_vec());
            count += 1;
        }
    }
    assert_eq!(count, 5 * 50 * 5 + 1);
    assert_eq!(seen.len(), count);
}
