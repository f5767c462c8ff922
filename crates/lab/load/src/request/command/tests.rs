#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use wire::resp::{ReplyScanner, ReplySink};

use crate::Target;
use crate::request::{Assertion, Body, Composer, Mix, RequestError, Step, Table};

fn composer(command: &str) -> Result<Composer, RequestError> {
    with_table(command, Table::default())
}

fn with_table(command: &str, table: Table) -> Result<Composer, RequestError> {
    let mut step = Step::new("command", "", "");
    step.body = Body::Template(command.to_owned());
    let mut mix = Mix::of(step);
    mix.tables.insert("users".to_owned(), table);
    let (target, _) = Target::parse("redis://127.0.0.1").unwrap();
    Composer::new(&mix, &target, 1)
}

#[derive(Default)]
struct Words(Vec<Vec<u8>>);

impl ReplySink for Words {
    fn part(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(last) => last.extend_from_slice(bytes),
            None => self.0.push(bytes.to_vec()),
        }
    }

    fn next_value(&mut self) {
        if self.0.is_empty() {
            self.0.push(Vec::new());
        }
        self.0.push(Vec::new());
    }
}

/// The words of a request as the codec reads them.
fn words(composer: &Composer, arrival: u64) -> Vec<String> {
    let mut bytes = Vec::new();
    composer
        .write(&composer.begin(arrival), &mut bytes)
        .unwrap();
    let mut words = Words::default();
    let scan = ReplyScanner::default().scan(&bytes, &mut words).unwrap();
    assert_eq!(scan.consumed, bytes.len());
    let reply = scan.complete.unwrap();
    words.0.resize(reply.elements as usize, Vec::new());
    words
        .0
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

#[test]
fn words_are_those_of_redis_cli() {
    let cases: [(&str, &[&str]); 7] = [
        ("PING", &["PING"]),
        ("  GET   key ", &["GET", "key"]),
        (
            r#"SET k "two words\r\n\x41\"""#,
            &["SET", "k", "two words\r\nA\""],
        ),
        (r"SET k 'it\'s \n'", &["SET", "k", r"it's \n"]),
        (r#"SET k """#, &["SET", "k", ""]),
        (r#"SET "a"b c"#, &["SET", "ab", "c"]),
        (r#"SET k {"a":{"b":1}}"#, &["SET", "k", "{a:{b:1}}"]),
    ];
    for (command, expected) in cases {
        assert_eq!(words(&composer(command).unwrap(), 0), expected, "{command}");
    }
    let plain = composer("SET k é").unwrap();
    assert_eq!(
        plain.plain().unwrap(),
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\né\r\n".as_bytes()
    );
}

#[test]
fn variables_stand_within_words() {
    let composer =
        composer("SET key:{seq}:{uniform 3 3} \"v {random 4}\" EX {uniform 60 60}").unwrap();
    assert!(composer.plain().is_none());
    let seen = words(&composer, 42);
    assert_eq!(seen[1], "key:42:3");
    assert_eq!((seen[2].len(), &seen[2][..2]), (6, "v "));
    assert_eq!(seen[3..], ["EX", "60"]);
    assert_ne!(words(&composer, 43)[2], seen[2]);
    assert_eq!(words(&composer, 42), seen);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("", "is a command", 0..0),
        ("   ", "is a command", 0..3),
        ("{seq} a", "begins with its name", 0..5),
        ("GET \"a", "not closed", 0..6),
        ("GET {sek}", "unknown variable", 5..8),
        (" multi", "transaction", 1..6),
        ("select 3", "URL names", 0..6),
        ("SUBSCRIBE a", "no reply of its own", 0..9),
        ("CLIENT reply off", "no reply of its own", 0..6),
        (r#"GET "\q""#, "unknown escape", 0..8),
        (r#"GET "\{seq}""#, "cannot be escaped", 0..12),
    ];
    for (command, message, at) in cases {
        let error = composer(command).unwrap_err();
        assert!(error.message.contains(message), "{command}: {error}");
        assert_eq!(error.at, at, "{command}: {error}");
    }
    assert!(composer("CLIENT LIST").is_ok());
}

#[test]
fn rows_are_asserted_of_databases_only() {
    let asserted = |url: &str| {
        let mut step = Step::new("command", "", "/");
        step.body = Body::Template("PING".to_owned());
        step.assertions = vec![Assertion::parse("rows 1..2").unwrap()];
        if url.starts_with("http") {
            step.body = Body::Empty;
        } else {
            step.path = String::new();
        }
        Composer::new(&Mix::of(step), &Target::parse(url).unwrap().0, 1)
    };
    assert!(asserted("redis://h").is_ok());
    assert!(
        asserted("http://h")
            .unwrap_err()
            .message
            .contains("no rows")
    );
}

proptest! {
    /// Whatever a table holds, it stays the word that it was put into.
    #[test]
    fn a_value_stays_in_its_word(value in "[ -~\r\n\u{e9}]{0,30}") {
        let table = Table { columns: vec!["name".to_owned()], rows: vec![vec![value.clone()]] };
        let composer = with_table("SET 'a b' {line users.name} x{line users.name}", table).unwrap();
        prop_assert_eq!(words(&composer, 7), ["SET", "a b", &value, &format!("x{value}")]);
    }

    #[test]
    fn any_text_is_a_command_or_refused_in_place(text in "[a-zA-Z{}\"'\\\\ x0-9é\n]{0,40}") {
        match composer(&text) {
            Ok(composer) => { words(&composer, 1); }
            Err(error) => prop_assert!(text.get(error.at.clone()).is_some(), "{error}"),
        }
    }
}
