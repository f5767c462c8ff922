use std::os::unix::fs::PermissionsExt;

use super::*;

const FIRST: &str = "CREATE TABLE numbers (id INTEGER PRIMARY KEY, value TEXT NOT NULL);";
const SECOND: &str = "ALTER TABLE numbers ADD COLUMN more INTEGER NOT NULL DEFAULT 7;";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn put(database: &mut Sqlite, value: &str) -> rusqlite::Result<()> {
    database.write(|transaction| {
        let put = "INSERT INTO numbers (value) VALUES (?1)";
        transaction.execute(put, [value]).map(drop)
    })
}

fn values(database: &Sqlite) -> Result<Vec<u32>, StoreError> {
    let mut values = Vec::new();
    database.rows("numbers", "SELECT id, value FROM numbers", |row| {
        values.push(row.get::<_, String>(1)?.parse()?);
        Ok(())
    })?;
    Ok(values)
}

#[test]
fn rows_are_there_again_and_tables_grow_with_the_program() {
    let folder = folder();
    let path = folder.path().join("made/on/the/way/a.sqlite");
    let mut database = Sqlite::open(&path, "test", &[FIRST]).unwrap();
    put(&mut database, "1").unwrap();
    put(&mut database, "2").unwrap();
    drop(database);
    let database = Sqlite::open(&path, "test", &[FIRST, SECOND]).unwrap();
    assert_eq!(values(&database).unwrap(), [1, 2]);
    let mut more = 0;
    let sum = |row: &Row<'_>| {
        more += row.get::<_, i64>(1)?;
        Ok(())
    };
    database
        .rows("numbers", "SELECT id, more FROM numbers", sum)
        .unwrap();
    assert_eq!(more, 14);
    drop(database);
    let newer = Sqlite::open(&path, "test", &[FIRST]).unwrap_err();
    assert!(
        matches!(
            &newer,
            StoreError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{newer}"
    );
}

#[test]
fn only_its_owner_may_read_it() {
    let folder = folder();
    let path = folder.path().join("a.sqlite");
    let mut database = Sqlite::open(&path, "test", &[FIRST]).unwrap();
    put(&mut database, "1").unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file:?}: {mode:o}");
    }
}

#[test]
fn a_second_user_is_told_and_may_come_back() {
    let folder = folder();
    let path = folder.path().join("a.sqlite");
    let first = Sqlite::open(&path, "clerk", &[FIRST]).unwrap();
    let second = Sqlite::open(&path, "clerk", &[FIRST]).unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    assert!(second.to_string().contains("another clerk holds its lock"));
    drop(first);
    Sqlite::open(&path, "clerk", &[FIRST]).unwrap();
}

#[test]
fn a_full_disk_and_a_failed_statement_leave_nothing_behind() {
    let folder = folder();
    let path = folder.path().join("a.sqlite");
    let mut database = Sqlite::open(&path, "test", &[FIRST]).unwrap();
    put(&mut database, "1").unwrap();
    database.limit_pages(1);
    let full = put(&mut database, &"0".repeat(100_000)).unwrap_err();
    assert_eq!(
        full.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DiskFull)
    );
    database.limit_pages(1 << 20);
    let second = database.write(|transaction| {
        transaction.execute("INSERT INTO numbers (value) VALUES ('3')", [])?;
        transaction.execute("INSERT INTO numbers (value) VALUES (NULL)", [])?;
        Ok(())
    });
    assert!(second.is_err());
    put(&mut database, "2").unwrap();
    assert_eq!(values(&database).unwrap(), [1, 2]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = folder();
    let path = folder.path().join("a.sqlite");
    let mut database = Sqlite::open(&path, "test", &[FIRST]).unwrap();
    put(&mut database, "1").unwrap();
    put(&mut database, "two").unwrap();
    let damaged = values(&database).unwrap_err();
    assert_eq!(
        damaged.to_string(),
        "read row 2 of numbers: invalid digit found in string; remove the row or restore the database from a copy"
    );
    drop(database);
    std::fs::write(
        &path,
        "no database at all, but long enough to be looked at".repeat(20),
    )
    .unwrap();
    let other = Sqlite::open(&path, "test", &[FIRST]).unwrap_err();
    assert!(matches!(other, StoreError::Open { .. }), "{other}");
    let folder = Sqlite::open(folder.path(), "test", &[FIRST]).unwrap_err();
    assert!(matches!(folder, StoreError::Open { .. }), "{folder}");
}

#[test]
fn why_nothing_can_be_written_is_found_out() {
    let folder = folder();
    assert_eq!(unwritable(&folder.path().join("a.sqlite")), None);
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    let found = unwritable(&folder.path().join("missing/a.sqlite")).unwrap();
    assert!(found.contains("missing cannot be written to"), "{found}");
}

#[test]
fn a_file_that_was_rewritten_has_nothing_of_before() {
    let folder = folder();
    let path = folder.path().join("a.sqlite");
    let mut database = Sqlite::open(&path, "test", &[FIRST]).unwrap();
    for _ in 0..50 {
        put(&mut database, "1234512345").unwrap();
    }
    let replace = |database: &mut Sqlite| {
        database.write(|transaction| {
            transaction.execute("UPDATE numbers SET value = '7' WHERE id < 40", [])?;
            transaction.execute("DELETE FROM numbers WHERE id >= 40", [])?;
            Ok(())
        })
    };
    let shows = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.into_iter().any(|file| {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            bytes.windows(10).any(|window| window == b"1234512345")
        })
    };
    replace(&mut database).unwrap();
    assert!(shows());
    database.rewrite().unwrap();
    assert!(!shows());
    assert_eq!(values(&database).unwrap(), [7; 39]);
    put(&mut database, "8").unwrap();
    assert_eq!(values(&database).unwrap().len(), 40);
}
