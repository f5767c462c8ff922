//! The commands of README and of the page about load, run as they stand there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, project};

/// Blocks between ``` of a kind, in order.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut inside, line.strip_prefix("```")) {
            (None, Some(language)) => inside = Some((language == kind, String::new())),
            (Some((wanted, block)), Some(_)) => {
                if *wanted {
                    found.push(std::mem::take(block));
                }
                inside = None;
            }
            (Some((_, block)), None) => *block += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    found
}

/// The same commands, on ports that nobody else has, and over sooner. A person types no
/// faster than what was started in the background comes up; neither does this.
fn bounded(block: &str, [target, entry, admin]: [u16; 3]) -> String {
    let of = |port: u16| format!("127.0.0.1:{port}");
    let listen = format!("headroom target --listen {}", of(target));
    let commands = block
        .replace("headroom target", &listen)
        .replace("graph up", &format!("graph up --admin {}", of(admin)))
        .replace("127.0.0.1:8080", &of(target))
        .replace("127.0.0.1:8000", &of(entry))
        .replace("127.0.0.1:8090", &of(admin))
        .replace("--duration 10s", "--duration 2s")
        .replace("--duration 30s", "--duration 2s")
        .replace("--step 20s", "--step 500ms")
        .replace("--knee", "--each 1s --within 15s --knee");
    let lines = commands.lines().map(|line| match line.ends_with('&') {
        true => {
            let (_, port) = line.split_once("--listen 127.0.0.1:").expect("an address");
            let port = port.split(' ').next().unwrap_or_default();
            format!(
                "{line}\nuntil (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done\n"
            )
        }
        false if line.starts_with("headroom load") && unbounded(line) => {
            format!("{line} --duration 2s\n")
        }
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Whether a load has the usual length.
fn unbounded(line: &str) -> bool {
    let bounds = ["--duration", "--knee", "--step"];
    !bounds.iter().any(|bound| line.contains(bound))
}

/// Runs commands as a person types them: one after the other, in one shell, whatever each
/// of them ends with. Afterwards everything they started is gone.
fn typed(folder: &Path, commands: &str) -> Finished {
    let binary = Path::new(env!("CARGO_BIN_EXE_headroom"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // A mistake in a command is 4, and one of the shell 126 or more.
    let script = format!(
        "set -m\ntrap '{{ kill $(jobs -p); wait; }} 2>/dev/null' EXIT\n\
         trap 's=$?; if [ $s -ge 4 ]; then exit $s; fi' ERR\n{commands}\ntrue\n"
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    Finished::of(output)
}

/// Runs the commands of a document; returns what they said.
fn follow(lab: &Lab, text: &str) -> String {
    let ports = [free_port(), free_port(), free_port()];
    let commands = blocks(text, "sh");
    assert!(!commands.is_empty(), "there are commands");
    let folder = lab.path("typed");
    fs::create_dir(&folder).expect("a folder");
    let mut said = String::new();
    for block in &commands {
        let done = typed(&folder, &bounded(block, ports)).expect_code(0);
        said += &done.stdout;
        said += &done.stderr;
    }
    said
}

fn document(name: &str) -> String {
    fs::read_to_string(project().join(name)).expect("a document")
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    let lab = Lab::alone();
    let readme = document("README.md");
    let said = follow(&lab, &readme);
    // What it shows as output begins its lines as the real one does.
    let shown = blocks(&readme, "text").concat();
    let first_words = shown.lines().filter_map(|line| {
        let word = line.split_whitespace().next()?;
        let plain = word.chars().all(|c| c.is_ascii_alphabetic());
        (plain && word.len() > 2).then_some(word)
    });
    let verdicts = ["VALID", "INVALID", "PASS", "INCONCLUSIVE"];
    for word in first_words.filter(|word| !verdicts.contains(word)) {
        assert!(said.contains(word), "{word:?} is not in\n{said}");
    }
}

#[test]
fn the_commands_of_the_page_about_load_run() {
    follow(&Lab::alone(), &document("docs/load.md"));
}
