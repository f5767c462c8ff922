use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Cluster;
use super::*;

const MOST: Duration = Duration::from_secs(60);
const FIRST: &str = "CREATE TABLE numbers (id bigint PRIMARY KEY, value bytea NOT NULL);";
const SECOND: &str = "ALTER TABLE numbers ADD COLUMN more bigint NOT NULL DEFAULT 7;";

static OLD: Schema = schema(&[FIRST]);
static NEW: Schema = schema(&[FIRST, SECOND]);

const fn schema(migrations: &'static [&'static str]) -> Schema {
    Schema {
        owner: "test",
        application: "a test",
        lock: i64::from_be_bytes(*b"\xffr-tests"),
        book: "book",
        migrations,
    }
}

fn postgres(address: &str, schema: &'static Schema) -> Postgres {
    Postgres::new(PostgresSettings::at(address).unwrap(), schema).unwrap()
}

fn put(values: &[(i64, &'static [u8])]) -> Statement<'static> {
    let put = "INSERT INTO numbers (id, value) SELECT * FROM unnest($1::bigint[], $2::bytea[])
        ON CONFLICT (id) DO UPDATE SET value = excluded.value";
    let (ids, values): (Vec<i64>, Vec<&[u8]>) = values.iter().copied().unzip();
    Statement::new(put, vec![ids.into(), values.into()])
}

async fn values(database: &Postgres) -> Result<Vec<(i64, u64)>, StoreError> {
    let mut values = Vec::new();
    let query = "SELECT id, value FROM numbers ORDER BY id";
    let take = |row: &Row| {
        let text = String::from_utf8(row.try_get(1)?)?;
        values.push((row.try_get(0)?, text.parse()?));
        Ok(())
    };
    database.rows("numbers", query, take).await?;
    Ok(values)
}

/// Connects, once the server is up again.
async fn back(database: &mut Postgres) -> Found {
    loop {
        match database.connect().await {
            Ok(found) => return found,
            Err(StoreError::Database { .. }) => sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_transaction_is_whole_and_tables_grow_with_the_program() {
    let cluster = Cluster::start();
    let address = cluster.database("whole");
    let mut database = postgres(&address, &OLD);
    assert!(database.lost());
    assert_eq!(database.connect().await.unwrap(), Found::First);
    let statements = [put(&[(1, b"10"), (2, b"20")]), put(&[(2, b"21")])];
    database.write(&statements, MOST).await.unwrap();
    // A statement that fails undoes those before and keeps those after it from being done; the
    // connection lives.
    let twice = put(&[(3, b"30"), (3, b"31")]);
    let statements = [put(&[(1, b"11")]), twice, put(&[(4, b"40")])];
    let error = database.write(&statements, MOST).await.unwrap_err();
    assert!(
        error.to_string().starts_with("write to the database: "),
        "{error}"
    );
    assert!(!database.lost());
    assert_eq!(values(&database).await.unwrap(), [(1, 10), (2, 21)]);
    // Zero bytes pass where bytes do; what cannot be read is named.
    database.write(&[put(&[(5, b"\0")])], MOST).await.unwrap();
    let error = values(&database).await.unwrap_err();
    assert!(
        error.to_string().starts_with("read row 5 of numbers: "),
        "{error}"
    );
    drop(database);

    let mut database = postgres(&address, &NEW);
    while let Err(StoreError::Locked { .. }) = database.connect().await {
        sleep(Duration::from_millis(5)).await;
    }
    let sums = cluster.psql("whole", "SELECT sum(more) FROM numbers");
    assert_eq!(sums.stdout, b"21\n");
    drop(database);
    let mut database = postgres(&address, &OLD);
    let error = loop {
        match database.connect().await.unwrap_err() {
            StoreError::Locked { .. } => sleep(Duration::from_millis(5)).await,
            error => break error.to_string(),
        }
    };
    assert!(error.contains("tables have version 2"), "{error}");
}

/// Kills the server, and waits until the process of it that serves a connection has noticed:
/// until then it may take one more request.
async fn kill(cluster: &mut Cluster, database: &Postgres) {
    cluster.kill();
    while !database.lost() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_became_of_a_transaction_is_known_after_the_connection_broke() {
    let mut cluster = Cluster::start();
    let mut database = postgres(&cluster.database("doubt"), &OLD);
    database.connect().await.unwrap();
    database.write(&[put(&[(1, b"1")])], MOST).await.unwrap();
    kill(&mut cluster, &database).await;
    database
        .write(&[put(&[(2, b"2")])], MOST)
        .await
        .unwrap_err();
    assert!(database.lost());
    let error = database.connect().await.unwrap_err().to_string();
    assert!(
        error.contains("connect to the database: doubt at "),
        "{error}"
    );
    cluster.resume();
    // It never arrived.
    assert_eq!(back(&mut database).await, Found::AsLeft);
    assert_eq!(values(&database).await.unwrap(), [(1, 1)]);
    // One that takes place while nobody hears of it: the wait is over before the answer.
    let slow = Statement::new("SELECT pg_sleep(0.3)", vec![]);
    let statements = [slow, put(&[(3, b"3")])];
    let error = database.write(&statements, Duration::from_millis(50)).await;
    assert!(error.unwrap_err().to_string().contains("no answer in time"));
    let found = back(&mut database).await;
    let expected = match found {
        Found::Done => vec![(1, 1), (3, 3)],
        // Its process was ended before it came to the end.
        Found::AsLeft => vec![(1, 1)],
        found => panic!("{found:?}"),
    };
    assert_eq!(values(&database).await.unwrap(), expected);
    database.write(&[put(&[(4, b"4")])], MOST).await.unwrap();
    // A transaction that was confirmed is gone.
    let undone = cluster.psql("doubt", "UPDATE book SET batch = batch - 1");
    assert!(undone.status.success());
    cluster.kill();
    cluster.resume();
    assert_eq!(back(&mut database).await, Found::Behind);
}

#[tokio::test]
async fn a_transaction_that_took_place_unheard_is_found_done() {
    let mut cluster = Cluster::start();
    let mut database = postgres(&cluster.database("unheard"), &OLD);
    database.connect().await.unwrap();
    kill(&mut cluster, &database).await;
    database
        .write(&[put(&[(1, b"1")])], MOST)
        .await
        .unwrap_err();
    cluster.resume();
    // As if its answer alone had been lost.
    let done = "UPDATE book SET batch = batch + 1; INSERT INTO numbers VALUES (1, '1')";
    loop {
        // The tables are there once the server has recovered.
        if cluster.psql("unheard", done).status.success() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(back(&mut database).await, Found::Done);
    assert_eq!(values(&database).await.unwrap(), [(1, 1)]);
}

#[tokio::test]
async fn one_program_at_a_time_writes_and_the_next_is_told_from_the_last() {
    let cluster = Cluster::start();
    let address = cluster.database("shared");
    let mut first = postgres(&address, &OLD);
    first.connect().await.unwrap();
    let mut second = postgres(&address, &OLD);
    for _ in 0..3 {
        let locked = second.connect().await.unwrap_err().to_string();
        assert!(locked.contains("another test holds its lock"), "{locked}");
        assert!(locked.contains("shared at "), "{locked}");
    }
    // The connection of the first breaks; whoever comes next has the lock.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'";
    assert!(cluster.psql("shared", end).status.success());
    while second.connect().await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    second.write(&[put(&[(1, b"1")])], MOST).await.unwrap();
    first.write(&[put(&[(2, b"2")])], MOST).await.unwrap_err();
    let locked = first.connect().await.unwrap_err();
    assert!(matches!(locked, StoreError::Locked { .. }), "{locked}");
    drop(second);
    let found = loop {
        match first.connect().await {
            Ok(found) => break found,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(found, Found::Others);
    assert_eq!(values(&first).await.unwrap(), [(1, 1)]);
}

/// The process that holds the lock.
fn holder(cluster: &Cluster, database: &str) -> String {
    let held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted";
    let pid = cluster.psql(database, held);
    String::from_utf8(pid.stdout).unwrap().trim().to_owned()
}

fn signal(pid: &str, signal: &str) {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-s", signal, pid]).status().unwrap().success());
}

#[tokio::test]
async fn a_former_connection_that_stands_still_is_nobody_else() {
    let cluster = Cluster::start();
    let address = cluster.database("still");
    let mut database = postgres(&address, &OLD);
    database.connect().await.unwrap();
    let still = holder(&cluster, "still");
    signal(&still, "STOP");
    let lines = [put(&[(1, b"1")])];
    let most = Duration::from_millis(50);
    database.write(&lines, most).await.unwrap_err();
    for _ in 0..2 {
        let error = database.connect().await.unwrap_err();
        assert!(matches!(error, StoreError::Database { .. }), "{error}");
        assert!(error.to_string().contains("former connection"), "{error}");
    }
    signal(&still, "CONT");
    let found = back(&mut database).await;
    assert!(matches!(found, Found::AsLeft | Found::Done), "{found:?}");
    database.write(&[put(&[(2, b"2")])], MOST).await.unwrap();

    // With somebody else there it is told from that: one takes the lock once the process has ended.
    let mut second = postgres(&address, &OLD);
    let still = holder(&cluster, "still");
    signal(&still, "STOP");
    database.write(&lines, most).await.unwrap_err();
    let error = database.connect().await.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error}");
    database.give_up();
    database.waiting = None;
    signal(&still, "CONT");
    while second.connect().await.is_err() {
        sleep(Duration::from_millis(5)).await;
    }
    let locked = database.connect().await.unwrap_err();
    assert!(matches!(locked, StoreError::Locked { .. }), "{locked}");
}

#[tokio::test]
async fn a_connection_that_stood_still_once_it_had_the_lock_is_our_own() {
    let cluster = Cluster::start();
    let address = cluster.database("signing");
    let mut database = postgres(&address, &OLD);
    database.connect().await.unwrap();
    database.give_up();
    while !holder(&cluster, "signing").is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    // It gets the lock, and then waits for the book in vain.
    let settings = PostgresSettings::at(&address).unwrap();
    let mut blocking = Shared::new(settings, &SHARED).unwrap();
    blocking.connect().await.unwrap();
    blocking
        .execute("BEGIN; LOCK TABLE book", MOST)
        .await
        .unwrap();
    let locked = async {
        while holder(&cluster, "signing").is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        found = database.connect() => panic!("{found:?}"),
        () = locked => {}
    }
    let still = holder(&cluster, "signing");
    signal(&still, "STOP");
    blocking.execute("ROLLBACK", MOST).await.unwrap();
    let error = database.connect().await.unwrap_err();
    assert!(error.to_string().contains("former connection"), "{error}");
    signal(&still, "CONT");
    assert_eq!(back(&mut database).await, Found::AsLeft);
}

static SHARED: Schema = Schema {
    owner: "test",
    application: "test",
    lock: 78,
    book: "shared_schema",
    migrations: &["CREATE TABLE turns (id bigint PRIMARY KEY); CREATE TABLE more (id bigint)"],
};

#[tokio::test]
async fn several_share_a_database_from_the_first_moment_on() {
    let cluster = Cluster::start();
    let settings = PostgresSettings::at(&cluster.database("shared")).unwrap();
    // All at once find no tables.
    let openings = (0..6).map(async |_| {
        let mut shared = Shared::new(settings.clone(), &SHARED).unwrap();
        assert!(shared.lost());
        shared.connect().await.unwrap();
        shared
    });
    let mut all = futures_util::future::join_all(openings).await;
    let text = "INSERT INTO turns SELECT * FROM unnest($1::bigint[])
        ON CONFLICT DO NOTHING RETURNING id";
    let mut taken = 0;
    for shared in &all {
        let take = Statement::new(text, vec![vec![7_i64].into()]);
        taken += shared.query(&take, MOST).await.unwrap().len();
    }
    assert_eq!(taken, 1);
    // One that was told nonsense goes on.
    let nonsense = Statement::new("SELECT FROM nothing", Vec::new());
    all[0].query(&nonsense, MOST).await.unwrap_err();
    all[0]
        .execute("BEGIN; DELETE FROM turns; COMMIT", MOST)
        .await
        .unwrap();
    all[0].give_up();
    assert!(all[0].lost());
    all[0].query(&nonsense, MOST).await.unwrap_err();
    all[0].connect().await.unwrap();
    let take = Statement::new(text, vec![vec![7_i64].into()]);
    assert_eq!(all[0].query(&take, MOST).await.unwrap().len(), 1);
}
