use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::*;

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn polled(gatherer: &mut Gatherer) -> Vec<String> {
    let mut lines = Vec::new();
    let sink = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
    gatherer.poll(sink).unwrap();
    lines
}

fn gatherer(folder: &Path, pattern: &str) -> Gatherer {
    Gatherer::new([folder.join(pattern).display().to_string()]).unwrap()
}

#[test]
fn what_was_there_before_is_not_read_and_what_comes_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    append(&at("a.log"), "old\n");
    let mut gatherer = gatherer(folder.path(), "*.log");
    assert_eq!(polled(&mut gatherer), Vec::<String>::new());
    append(&at("a.log"), "one\ntw");
    append(&at("b.log"), "new\n");
    append(&at("b.txt"), "other\n");
    append(&at("c.log.gz"), "packed\n");
    assert_eq!(polled(&mut gatherer), ["one", "new"]);
    append(&at("a.log"), "o\nlast");
    let mut rest = Vec::new();
    gatherer.finish(|line| rest.push(line.to_vec())).unwrap();
    assert_eq!(rest, [b"two".to_vec(), b"last".to_vec()]);
}

#[test]
fn a_file_that_is_rotated_is_read_once_and_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for pattern in ["app.log", "app.log*"] {
        let _ = fs::remove_file(at("app.log"));
        let _ = fs::remove_file(at("app.log.1"));
        let mut gatherer = gatherer(folder.path(), pattern);
        append(&at("app.log"), "1\n");
        assert_eq!(polled(&mut gatherer), ["1"], "{pattern}");
        append(&at("app.log"), "2\n");
        fs::rename(at("app.log"), at("app.log.1")).unwrap();
        append(&at("app.log"), "4\n");
        // The program goes on with the file that it has open.
        append(&at("app.log.1"), "3\n");
        let mut lines = polled(&mut gatherer);
        lines.sort();
        assert_eq!(lines, ["2", "3", "4"], "{pattern}");
        append(&at("app.log"), "5\n");
        assert_eq!(polled(&mut gatherer), ["5"], "{pattern}");
    }
}

#[test]
fn a_file_that_is_cut_is_read_again_and_one_that_is_gone_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let mut gatherer = gatherer(folder.path(), "app.log");
    append(&path, "one line\n");
    assert_eq!(polled(&mut gatherer), ["one line"]);
    fs::write(&path, "2\nlast").unwrap();
    assert_eq!(polled(&mut gatherer), ["2"]);
    fs::remove_file(&path).unwrap();
    let mut last = Vec::new();
    for _ in 0..IDLE_POLLS {
        last.extend(polled(&mut gatherer));
    }
    assert_eq!(last, ["last"]);
    assert!(gatherer.files.is_empty());
}

#[test]
fn what_is_copied_before_its_log_is_cut_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rotate = || {
        let _ = fs::rename(at("app.log.1"), at("app.log.2"));
        fs::copy(at("app.log"), at("app.log.1")).unwrap();
    };
    let cut = || {
        let file = OpenOptions::new().write(true).open(at("app.log")).unwrap();
        file.set_len(0).unwrap();
    };
    append(&at("app.log"), "0\n");
    let mut gatherer = gatherer(folder.path(), "app.log*");
    append(&at("app.log"), "1\n2\nhal");
    assert_eq!(polled(&mut gatherer), ["1", "2"]);
    append(&at("app.log"), "f\n3\n");
    rotate();
    assert_eq!(polled(&mut gatherer), ["half", "3"]);
    append(&at("app.log"), "4\n");
    assert_eq!(polled(&mut gatherer), ["4"]);
    cut();
    append(&at("app.log"), "5\n");
    assert_eq!(polled(&mut gatherer), ["5"]);
    assert_eq!(polled(&mut gatherer), Vec::<String>::new());
    // What was not read when the log was cut is read of the copy.
    append(&at("app.log"), "6\nsev");
    assert_eq!(polled(&mut gatherer), ["6"]);
    append(&at("app.log"), "en\n");
    rotate();
    cut();
    append(&at("app.log"), "8\n");
    let mut found = polled(&mut gatherer);
    found.extend(polled(&mut gatherer));
    found.extend(polled(&mut gatherer));
    assert_eq!(found, ["8", "seven"]);
    // A log of its own that begins alike is no copy.
    append(&at("app.log.new"), "8\n9\n");
    append(&at("app.log"), "10\n");
    let mut found = polled(&mut gatherer);
    found.extend(polled(&mut gatherer));
    found.sort();
    assert_eq!(found, ["10", "8", "9"]);
    // Nor is one that stays alike while the other goes on.
    append(&at("app.log.too"), "8\n");
    let mut found = Vec::new();
    for _ in 0..=COPIED_WITHIN + 1 {
        found.extend(polled(&mut gatherer));
    }
    assert_eq!(found, ["8"]);
    append(&at("app.log.last"), "8\n");
    let mut rest = Vec::new();
    gatherer.finish(|line| rest.push(line.to_vec())).unwrap();
    assert_eq!(rest, [b"8".to_vec()]);
}

#[test]
fn a_log_with_the_long_head_of_the_one_before_is_no_copy_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let head = "=".repeat(2000);
    let mut gatherer = gatherer(folder.path(), "app.log*");
    append(&at("app.log"), &format!("{head}\n1\n2\n3\n"));
    assert_eq!(polled(&mut gatherer), [&*head, "1", "2", "3"]);
    fs::rename(at("app.log"), at("app.log.1")).unwrap();
    append(&at("app.log"), &format!("{head}\n4\n"));
    assert_eq!(polled(&mut gatherer), [&*head, "4"]);
}

#[test]
fn what_is_no_pattern_is_said_and_too_many_files_too() {
    let refused = Gatherer::new(["/x/***.log".to_owned()]).unwrap_err();
    assert!(
        refused.to_string().contains("`/x/***.log` is no pattern"),
        "{refused}"
    );
    let folder = tempfile::tempdir().unwrap();
    for number in 0..=MOST_FILES {
        append(&folder.path().join(format!("{number}.log")), "x\n");
    }
    let refused = Gatherer::new([folder.path().join("*").display().to_string()]).unwrap_err();
    assert!(
        refused.to_string().contains("more than 1000 files match"),
        "{refused}"
    );
}
