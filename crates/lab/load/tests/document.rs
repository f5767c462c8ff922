//! The examples of `docs/requests.md` are what they are said to be.

use std::error::Error;

use lab_load::Target;
use lab_load::arrivals::{Arrivals, trace};
use lab_load::request::{AnswerEnd, Assertion, Body, Composer, Mix, Step, Table, Take};

const DOCUMENT: &str = include_str!("../../../../docs/requests.md");

/// The examples of a kind: blocks that begin with "```text KIND".
fn blocks(kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside = false;
    for line in DOCUMENT.lines() {
        match line.strip_prefix("```") {
            Some(info) => {
                inside = info.strip_prefix("text ") == Some(kind);
                if inside {
                    blocks.push(String::new());
                }
            }
            None if inside => {
                if let Some(block) = blocks.last_mut() {
                    *block += line;
                    block.push('\n');
                }
            }
            None => {}
        }
    }
    assert!(!blocks.is_empty(), "no example of {kind}");
    blocks
}

/// Lines of the only block of a kind, without the remarks at their ends.
fn lines(kind: &str) -> Vec<String> {
    let block = blocks(kind).concat();
    let bare = |line: &str| match line.split_once(" # ") {
        Some((text, _)) => text.trim_end().to_owned(),
        None => line.to_owned(),
    };
    block.lines().map(bare).collect()
}

/// The requests of this step, with the table of the document.
fn composer(step: Step) -> Result<Composer, Box<dyn Error>> {
    composer_for("http://example.com", step)
}

/// The same, for this target.
fn composer_for(url: &str, step: Step) -> Result<Composer, Box<dyn Error>> {
    let mut mix = Mix::of(step);
    let table = Table::parse(&blocks("csv").concat())?;
    mix.tables.insert("users".to_owned(), table);
    let (target, _) = Target::parse(url)?;
    Ok(Composer::new(&mix, &target, 1)?)
}

/// The request of one arrival.
fn written(step: Step, arrival: u64) -> Result<String, Box<dyn Error>> {
    let composer = composer(step)?;
    let mut out = Vec::new();
    composer.write(&composer.begin(arrival), &mut out)?;
    Ok(String::from_utf8(out)?)
}

#[test]
fn all_blocks_are_examples_of_a_kind() {
    let kinds = [
        "arrivals",
        "trace",
        "url",
        "path",
        "body",
        "command",
        "sql",
        "csv",
        "value",
        "assertion",
        "answer",
    ];
    let tested: usize = kinds.iter().map(|kind| blocks(kind).len()).sum();
    assert_eq!(DOCUMENT.matches("\n```").count(), 2 * tested);
}

#[test]
fn arrivals_are_read() {
    for text in lines("arrivals") {
        let arrivals = Arrivals::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            Arrivals::parse(&arrivals.describe()),
            Ok(arrivals),
            "{text}"
        );
    }
    let Arrivals::Trace(times) = trace::parse(&blocks("trace").concat()).unwrap() else {
        panic!("not a trace");
    };
    assert_eq!(*times, [0, 12_000_000, 12_000_000, 1_500_000_000]);
}

#[test]
fn urls_are_read() {
    for url in lines("url") {
        Target::parse(&url).unwrap_or_else(|error| panic!("{url}: {error}"));
    }
}

#[test]
fn templates_are_written() {
    let paths: Vec<String> = lines("path")
        .iter()
        .map(|path| written(Step::new("get", "GET", path), 5).unwrap())
        .collect();
    assert!(
        paths[1].starts_with("GET /users/2/orders/5 HTTP/1.1\r\n"),
        "{paths:?}"
    );
    assert!(paths[2].starts_with("GET /b HTTP/1.1\r\n"), "{paths:?}");
    let bodies: Vec<String> = lines("body")
        .iter()
        .map(|body| {
            let mut step = Step::new("post", "POST", "/");
            step.body = Body::Template(body.clone());
            written(step, 4).unwrap()
        })
        .collect();
    let (_, json) = bodies[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(json.matches(['{', '[']).count(), 3, "{json}");
    assert!(json.starts_with("{\"user\": {\"name\": \"Ann\""), "{json}");
    assert!(
        bodies[1].ends_with("\r\n\r\n{query { user(id: 4) { name } }}"),
        "{}",
        bodies[1]
    );
}

#[test]
fn commands_are_written() {
    let commands: Vec<String> = lines("command")
        .iter()
        .map(|command| {
            let mut step = Step::new("command", "", "");
            step.body = Body::Template(command.clone());
            let composer = composer_for("redis://example.com", step).unwrap();
            let mut out = Vec::new();
            composer.write(&composer.begin(5), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        })
        .collect();
    assert!(
        commands[0].starts_with("*2\r\n$3\r\nGET\r\n"),
        "{commands:?}"
    );
    // A value with quotes is one word all the same.
    let value = "\r\n$26\r\nBob \"the builder\" was here\r\n$2\r\nEX\r\n";
    assert!(commands[1].contains(value), "{commands:?}");
    assert!(commands[2].starts_with("*4\r\n"), "{commands:?}");
    assert!(
        commands[3].contains("return redis.call('INCR', KEYS[1])"),
        "{commands:?}"
    );
}

#[test]
fn statements_are_bound() {
    for (sql, parameters) in lines("sql").iter().zip([1, 2, 2, 1]) {
        let mut step = Step::new("statement", "", "");
        step.body = Body::Template(sql.clone());
        let composer = composer_for("postgres://app@example.com", step).unwrap();
        let visit = composer.begin(5);
        let bound = composer.statement(&visit).unwrap();
        assert_eq!(bound.parameters(), parameters, "{sql}");
        assert!(bound.sql().contains(&format!("${parameters}")), "{sql}");
    }
}

#[test]
fn judgements_are_read() {
    for text in lines("value") {
        let mut step = Step::new("get", "GET", "/");
        step.take = vec![Take::parse(&text).unwrap_or_else(|error| panic!("{error}"))];
        composer(step).unwrap();
    }
    for text in lines("assertion") {
        let mut step = Step::new("get", "GET", "/");
        step.assertions = vec![Assertion::parse(&text).unwrap_or_else(|error| panic!("{error}"))];
        match text.starts_with("rows") {
            true => {
                step.body = Body::Template("GET key".to_owned());
                composer_for("redis://example.com", step).unwrap();
            }
            false => drop(composer(step).unwrap()),
        }
    }
    for text in lines("answer") {
        AnswerEnd::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    }
}
