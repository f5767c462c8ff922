//! Any bytes as an archive that a container downloads: nothing is written outside of its folder,
//! and no more than may be.

#![no_main]

use std::fs::{self, File};
use std::path::Path;
use std::process;

use cells::rep::unpack_archive;
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: u64 = 64 * 1024;

fuzz_target!(|data: &[u8]| {
    let all = std::env::temp_dir().join(format!("fuzz-archives-{}", process::id()));
    let inside = all.join("inside");
    fs::create_dir_all(&inside).expect("a folder");
    let archive = all.join("archive");
    fs::write(&archive, data).expect("a file");
    let opened = File::open(&archive).expect("a file");
    let _ = unpack_archive(opened, &inside, BYTES_MAX);
    let mut names: Vec<_> = fs::read_dir(&all)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["archive", "inside"]);
    assert_eq!(fs::read(&archive).expect("a file"), data);
    assert!(bytes(&inside) <= BYTES_MAX);
    fs::remove_dir_all(&all).expect("what was made");
});

/// Of all files in a folder; links count nothing.
fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let each = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes(&entry.path()),
        Ok(about) if about.is_file() => about.len(),
        _ => 0,
    });
    each.sum()
}
