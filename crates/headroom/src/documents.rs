//! Every command line in the documents is one that this program takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};

use crate::cli::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Documents and ready experiments, each with its text.
fn texts(folder: &str, extension: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut texts: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    texts.sort();
    texts
}

fn documents() -> Vec<(String, String)> {
    let mut documents = texts("docs", "md");
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "bench/README.md",
    ] {
        if let Ok(text) = fs::read_to_string(root().join(name)) {
            documents.push((name.to_owned(), text));
        }
    }
    documents
}

/// Lines within fences, joined where a backslash ends them; `mark` is before each of them.
fn lines(text: &str, mark: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text
        .lines()
        .map(|line| line.trim().trim_start_matches(mark))
    {
        let part = line.trim_end_matches('\\').trim();
        match (goes_on, lines.last_mut()) {
            (true, Some(last)) => *last += &format!(" {part}"),
            _ => lines.push(part.to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    lines
}

fn fenced(text: &str) -> String {
    let parts = text.split("\n```");
    let inside = parts.skip(1).step_by(2);
    let blocks = inside.map(|block| block.split_once('\n').unwrap_or_default().1);
    blocks.collect::<Vec<_>>().join("\n")
}

/// The words of each command of a line that starts this program, as a shell has them.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut passed_over = false;
    let end = |word: &mut Option<String>, passed_over: &mut bool, words: &mut Vec<String>| {
        if let Some(word) = word.take()
            && !std::mem::take(passed_over)
        {
            words.push(word);
        }
    };
    for c in line.chars() {
        let words = commands.last_mut().unwrap();
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '&' | ';') => {
                end(&mut word, &mut passed_over, words);
                commands.push(Vec::new());
            }
            (None, '<' | '>') => {
                end(&mut word, &mut passed_over, words);
                // The name of a file follows.
                passed_over = true;
            }
            (None, c) if c.is_whitespace() => end(&mut word, &mut passed_over, words),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut passed_over, commands.last_mut().unwrap());
    for words in &mut commands {
        // Variables of the environment stand before the program.
        let at = words.iter().position(|word| !word.contains('='));
        words.drain(..at.unwrap_or(words.len()));
    }
    commands.retain(|words| words.first().is_some_and(|word| word == "headroom"));
    commands
}

/// What is wrong with each command of some lines; says also how many there were.
fn mistakes(of: &str, lines: &[String]) -> (usize, Vec<String>) {
    let commands: Vec<Vec<String>> = lines.iter().flat_map(|line| commands(line)).collect();
    let mistakes = commands.iter().filter_map(|words| {
        let error = Cli::try_parse_from(words).err()?;
        let asked = matches!(
            error.kind(),
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
        );
        (!asked).then(|| format!("{of}: {}\n{error}", words.join(" ")))
    });
    (commands.len(), mistakes.collect())
}

fn none(found: Vec<String>) {
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn command_lines_are_taken_apart_as_a_shell_does() {
    let of = |line: &str| {
        let commands = commands(line);
        commands
            .iter()
            .map(|words| words.join("·"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("A=1 headroom load 'a b' -n 2 > x &"),
        ["headroom·load·a b·-n·2"]
    );
    assert_eq!(
        of("headroom graph check f | less; headroom man # more"),
        ["headroom·graph·check·f", "headroom·man"]
    );
    assert_eq!(of("make demo && curl x"), Vec::<String>::new());
}

#[test]
fn commands_in_documents_parse() {
    let (mut count, mut found) = (0, Vec::new());
    for (name, text) in documents() {
        let (commands, mistakes) = mistakes(&name, &lines(&fenced(&text), "$ "));
        count += commands;
        found.extend(mistakes);
    }
    assert!(count > 40, "only {count} commands were found");
    none(found);
}

#[test]
fn commands_at_the_head_of_experiments_parse() {
    let (mut count, mut found) = (0, Vec::new());
    for (name, text) in texts("experiments", "toml") {
        let comments: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        let (commands, mistakes) = mistakes(&name, &lines(&comments.join("\n"), "#"));
        count += commands;
        found.extend(mistakes);
    }
    assert!(count > 10, "only {count} commands were found");
    none(found);
}

#[test]
fn commands_in_the_help_parse() {
    fn each(command: &Command, found: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string);
        // What it does stands behind, after several spaces.
        let lines: Vec<String> = help
            .unwrap_or_default()
            .lines()
            .map(|line| {
                line.trim()
                    .split("   ")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        found.extend(mistakes(command.get_name(), &lines).1);
        for part in command.get_subcommands() {
            each(part, found);
        }
    }
    let mut found = Vec::new();
    each(&Cli::command(), &mut found);
    none(found);
}

/// Within a sentence: what follows a command may be left out or stand for something, but
/// each sub-command and each flag is there.
#[test]
fn commands_within_sentences_name_what_is_there() {
    let mut found = Vec::new();
    for (name, text) in documents() {
        let outside: String = text.split("\n```").step_by(2).collect();
        for code in outside.split('`').skip(1).step_by(2) {
            let Some(rest) = code.strip_prefix("headroom ") else {
                continue;
            };
            let root = Cli::command();
            let mut at = &root;
            for word in rest.split_whitespace() {
                if word.starts_with("--") && word.len() > 2 {
                    let flag = word.trim_start_matches('-').split('=').next();
                    let known = at.get_arguments().any(|one| one.get_long() == flag);
                    if !known && !["help", "version"].contains(&flag.unwrap_or_default()) {
                        found.push(format!("{name}: `{code}` has no {word}"));
                    }
                } else if at.has_subcommands() {
                    // `generate chain|tree|random` are three; within a table, `|` is `\|`.
                    let word = word.replace('\\', "");
                    for one in word.split('|') {
                        if at.find_subcommand(one).is_none() {
                            found.push(format!("{name}: `{code}` knows no {one}"));
                        }
                    }
                    let first = word.split('|').next().unwrap_or_default();
                    match at.find_subcommand(first) {
                        Some(part) => at = part,
                        None => break,
                    }
                }
            }
        }
    }
    none(found);
}
