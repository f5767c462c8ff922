//! The end of a log, for error messages; its beginning, for what a command said.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Lines shown of what a command said.
const FIRST_LINES: usize = 40;
/// Bytes read of what a command said.
const FIRST_BYTES: u64 = 4096;
/// Lines shown of each file.
const LINES: usize = 20;
/// Bytes read from the end of each file.
const BYTES: u64 = 64 * 1024;
/// Characters shown of a line.
const WIDTH: usize = 500;

/// The last lines of each file that has any, under its path.
pub(crate) fn last_lines(files: &[PathBuf]) -> String {
    let mut text = String::new();
    for file in files {
        let lines = tail(file);
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("\nlast lines of {}:", file.display()));
        for line in lines {
            text.push_str("\n  ");
            text.push_str(&line);
        }
    }
    if text.is_empty() {
        text.push_str("\nit wrote no output");
    }
    text
}

/// The first lines of a file, for as long as what it says is short. Empty if there is none.
pub(crate) fn first_lines(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FIRST_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().map(|line| shown(line, WIDTH)).collect();
    let cut = bytes.len() as u64 == FIRST_BYTES || lines.len() > FIRST_LINES;
    lines.truncate(FIRST_LINES);
    if cut {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

fn tail(path: &Path) -> Vec<String> {
    // A file that cannot be read has nothing to show; the error at hand says more.
    let Ok(mut file) = File::open(path) else {
        return Vec::new();
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(BYTES);
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(from)).is_err()
        || file.take(BYTES).read_to_end(&mut bytes).is_err()
    {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<&str> = text.lines().collect();
    // The first line may have been cut.
    if from > 0 && lines.len() > 1 {
        lines.remove(0);
    }
    let skip = lines.len().saturating_sub(LINES);
    let last = lines.into_iter().skip(skip);
    last.map(|line| shown(line, WIDTH)).collect()
}

/// The first characters of a line, without those that could steer the terminal.
pub(crate) fn shown(line: &str, width: usize) -> String {
    let mut text: String = line
        .chars()
        .take(width)
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if line.chars().nth(width).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_twenty_lines_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let lines: Vec<String> = (0..50).map(|n| format!("line {n}")).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let text = last_lines(&[folder.path().join("none.log"), path]);
        assert!(
            text.contains("\n  line 30\n") && text.ends_with("\n  line 49"),
            "{text}"
        );
        assert!(!text.contains("line 29"), "{text}");
        assert!(!text.contains("none.log"), "{text}");
    }

    #[test]
    fn what_a_command_says_is_shown_from_its_first_line_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        assert_eq!(first_lines(&path), "");
        std::fs::write(&path, "one\n\u{1b}two\n").unwrap();
        assert_eq!(first_lines(&path), "one\n\u{fffd}two");
        std::fs::write(&path, "line\n".repeat(41)).unwrap();
        assert!(first_lines(&path).ends_with("line\n…"));
        std::fs::write(&path, "x".repeat(200_000)).unwrap();
        assert!(first_lines(&path).len() <= 4096 + "…\n…".len());
    }

    #[test]
    fn long_lines_and_control_characters_are_tamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        std::fs::write(&path, format!("{}\n\u{1b}[2Jred\n", "x".repeat(200_000))).unwrap();
        let text = last_lines(&[path]);
        assert!(text.len() < 2000, "{}", text.len());
        assert!(text.contains("\u{fffd}[2Jred"), "{text}");
    }

    #[test]
    fn silence_is_said() {
        assert_eq!(last_lines(&[]), "\nit wrote no output");
    }
}
