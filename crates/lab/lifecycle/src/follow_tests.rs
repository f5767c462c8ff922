use std::fs;
use std::io::Write;

use super::*;

/// The new lines, as `number:text`.
fn poll(follower: &mut Follower) -> Vec<String> {
    let mut lines = Vec::new();
    follower
        .poll(|number, line| lines.push(format!("{number}:{}", String::from_utf8_lossy(line))))
        .unwrap();
    lines
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn gives_whole_lines_as_they_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.log"), folder.path().join("b.log"));
    let mut follower = Follower::new([&a, &b]);
    assert_eq!(follower.paths().collect::<Vec<_>>(), [&a, &b]);
    assert!(poll(&mut follower).is_empty());

    append(&a, "one\ntw");
    assert_eq!(poll(&mut follower), ["0:one"]);
    assert!(poll(&mut follower).is_empty());
    append(&a, "o");
    append(&b, "\nbee\n");
    assert_eq!(poll(&mut follower), ["1:", "1:bee"]);
    append(&a, "\nthree\nfo");
    assert_eq!(poll(&mut follower), ["0:two", "0:three"]);

    append(&b, "cut");
    let mut last = Vec::new();
    follower
        .finish(|number, line| last.push((number, line.to_vec())))
        .unwrap();
    assert_eq!(last, [(0, b"fo".to_vec()), (1, b"cut".to_vec())]);
}

#[test]
fn starts_again_when_a_file_became_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let mut follower = Follower::new([&path]);
    append(&path, "first line\nhalf");
    assert_eq!(poll(&mut follower), ["0:first line"]);
    fs::write(&path, "new\n").unwrap();
    assert_eq!(poll(&mut follower), ["0:new"]);
    fs::write(&path, "emptied, and longer since\n").unwrap();
    assert_eq!(poll(&mut follower), ["0:emptied, and longer since"]);
    // A program that goes on at its old place leaves zeros before.
    let length = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    file.set_len(length).unwrap();
    append(&path, "more\n");
    assert_eq!(poll(&mut follower), ["0:more"]);
}

#[test]
fn lines_may_be_cut_anywhere_between_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let lines: Vec<String> = (0..2000).map(|n| "x".repeat(n % 700)).collect();
    append(&path, &(lines.join("\n") + "\n"));
    assert!(fs::metadata(&path).unwrap().len() > 2 * CHUNK_BYTES as u64);
    let found = poll(&mut Follower::new([&path]));
    let expected: Vec<String> = lines.iter().map(|line| format!("0:{line}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_endless_line_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let mut follower = Follower::new([&path]);
    for _ in 0..3 {
        append(&path, &"x".repeat(MAX_LINE_BYTES));
        assert!(poll(&mut follower).is_empty());
    }
    append(&path, "\nnext\n");
    let found = poll(&mut follower);
    assert_eq!(
        (found[0].len(), found[1].as_str()),
        (2 + MAX_LINE_BYTES + 1, "0:next")
    );
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("a.log");
    append(&good, "line\n");
    let mut follower = Follower::new([folder.path(), &good]);
    let mut lines = 0;
    let error = follower.poll(|_, _| lines += 1).unwrap_err();
    assert_eq!((lines, error.path.as_path()), (1, folder.path()));
}

#[test]
fn what_is_written_after_a_moment_is_not_read_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.log", "b.log"].map(|name| folder.path().join(name));
    let mut follower = Follower::new(&paths);
    append(&paths[0], "one\ntw");
    let then = lengths(&paths);
    assert_eq!(then, [6, 0]);
    append(&paths[0], "o\nthree\n");
    append(&paths[1], "bee\n");
    let mut seen = Vec::new();
    follower
        .poll_to(&then, |number, line| seen.push((number, line.to_vec())))
        .unwrap();
    assert_eq!(seen, [(0, b"one".to_vec())]);
    assert_eq!(poll(&mut follower), ["0:two", "0:three", "1:bee"]);
    // A moment before what was read already is over.
    follower
        .poll_to(&then, |_, _| panic!("read twice"))
        .unwrap();
    assert!(poll(&mut follower).is_empty());
}
