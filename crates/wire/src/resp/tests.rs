#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

/// Values as texts.
#[derive(Debug, Default, Clone, PartialEq)]
struct Texts(Vec<Vec<u8>>);

impl ReplySink for Texts {
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

/// The replies of a stream that comes in pieces of `step` bytes, with their values.
fn read(input: &[u8], step: usize) -> Result<Vec<(Reply, Texts)>, RespError> {
    let mut scanner = ReplyScanner::default();
    let (mut replies, mut texts) = (Vec::new(), Texts::default());
    for piece in input.chunks(step.max(1)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let scan = scanner.scan(rest, &mut texts)?;
            rest = &rest[scan.consumed..];
            if let Some(reply) = scan.complete {
                replies.push((reply, std::mem::take(&mut texts)));
            }
        }
    }
    Ok(replies)
}

/// The only reply, with its values joined by `|`.
fn one(input: &str) -> (Reply, String) {
    let mut replies = read(input.as_bytes(), input.len()).unwrap();
    assert_eq!(replies.len(), 1, "{input:?}");
    let (reply, texts) = replies.remove(0);
    (reply, String::from_utf8(texts.0.join(&b"|"[..])).unwrap())
}

fn code(input: &str) -> Option<String> {
    one(input).0.error.map(|error| error.as_str().to_owned())
}

#[test]
fn every_type_is_read() {
    let cases = [
        ("+OK\r\n", "OK", 1),
        (":-42\r\n", "-42", 1),
        ("$5\r\nhe\r\nl\r\n", "he\r\nl", 1),
        ("$0\r\n\r\n", "", 1),
        ("$-1\r\n", "", 0),
        ("*-1\r\n", "", 0),
        ("_\r\n", "", 0),
        ("*0\r\n", "", 0),
        ("#t\r\n", "t", 1),
        (",1.5e3\r\n", "1.5e3", 1),
        (
            "(3492890328409238509324850943850943825024385\r\n",
            "3492890328409238509324850943850943825024385",
            1,
        ),
        ("=8\r\ntxt:text\r\n", "txt:text", 1),
        ("*3\r\n:1\r\n$-1\r\n+x\r\n", "1||x", 3),
        ("*2\r\n*2\r\n+a\r\n+b\r\n*-1\r\n", "a|b|", 2),
        ("~2\r\n+a\r\n+b\r\n", "a|b", 2),
        ("%2\r\n+k\r\n:1\r\n+l\r\n*2\r\n:2\r\n:3\r\n", "k|1|l|2|3", 4),
    ];
    for (input, texts, elements) in cases {
        let (reply, found) = one(input);
        assert_eq!(
            (found.as_str(), reply.elements),
            (texts, elements),
            "{input:?}"
        );
        assert_eq!(reply.error, None, "{input:?}");
    }
}

#[test]
fn what_stands_beside_a_reply_is_no_part_of_it() {
    for input in [
        "|1\r\n+ttl\r\n:3\r\n+v\r\n",
        "|0\r\n+v\r\n",
        ">3\r\n+message\r\n-ERR no\r\n*1\r\n+x\r\n+v\r\n",
        ">0\r\n+v\r\n",
    ] {
        let (reply, found) = one(input);
        assert_eq!(
            (found.as_str(), reply.elements, reply.bytes),
            ("v", 1, 1),
            "{input:?}"
        );
        assert_eq!(reply.error, None, "{input:?}");
    }
    let (reply, found) = one("*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n");
    assert_eq!((found.as_str(), reply.elements), ("1|2", 2));
}

#[test]
fn errors_have_codes() {
    assert_eq!(code("-ERR unknown command\r\n").unwrap(), "ERR");
    assert_eq!(code("-MOVED 3999 127.0.0.1:6381\r\n").unwrap(), "MOVED");
    assert_eq!(code("-LOADING\r\n").unwrap(), "LOADING");
    assert_eq!(code("!9\r\nOOM no me\r\n").unwrap(), "OOM");
    assert_eq!(code("-\r\n").unwrap(), "other");
    assert_eq!(code("-user_script:1: no\r\n").unwrap(), "other");
    assert_eq!(code("-ABCDEFGHIJKLMNOPQRSTUVWXYZ no\r\n").unwrap(), "other");
    assert_eq!(code("-ERRor\r\n").unwrap(), "other");
}

#[test]
fn an_error_within_a_reply_is_told_and_the_first_one_counts() {
    let nested = "*4\r\n+OK\r\n*1\r\n-WRONGTYPE no\r\n-ERR x\r\n:1\r\n";
    assert_eq!(code(nested).unwrap(), "WRONGTYPE");
    // What follows a code of one word is no part of it.
    assert_eq!(code("*2\r\n-BUSY\r\n+ABC\r\n").unwrap(), "BUSY");
    assert_eq!(read(b"-ERR\r\n+OK\r\n", 3).unwrap()[1].0.error, None);
}

#[test]
fn what_is_no_resp_is_refused() {
    let deep = "*1\r\n".repeat(DEEPEST + 1);
    let long = format!("+{}\r\n", "x".repeat(MOST_LINE as usize + 1));
    let cases = [
        ("HTTP/1.1 200 OK\r\n", RespError::Type(b'H')),
        ("+OK\n", RespError::End),
        ("+OK\rx", RespError::End),
        ("$2\r\nabc\r\n", RespError::End),
        ("$2\r\nab\rx", RespError::End),
        ("$-2\r\n", RespError::Number),
        ("$\r\n", RespError::Number),
        ("$?\r\n", RespError::Number),
        ("$--1\r\n", RespError::Number),
        ("*1x\r\n", RespError::Number),
        (":\r\n", RespError::Number),
        (":1a\r\n", RespError::Number),
        ("_x\r\n", RespError::Number),
        ("$536870913\r\n", RespError::TooLong),
        ("*9999999999999\r\n", RespError::TooLong),
        ("%4294967296\r\n", RespError::TooLong),
        ("*1\r\n>1\r\n+x\r\n", RespError::Push),
        (deep.as_str(), RespError::TooDeep),
        (long.as_str(), RespError::TooLong),
    ];
    for (input, error) in cases {
        assert_eq!(
            read(input.as_bytes(), 7).unwrap_err(),
            error,
            "{input:.40?}"
        );
    }
}

#[test]
fn a_huge_length_takes_no_memory() {
    let mut scanner = ReplyScanner::default();
    let mut texts = Texts::default();
    let scan = scanner
        .scan(b"*4294967296\r\n$536870912\r\nabc", &mut texts)
        .unwrap();
    assert_eq!(scan.complete, None);
    assert_eq!(texts.0, [b"abc".to_vec()]);
}

/// A value as a server would have it.
#[derive(Debug, Clone)]
enum Value {
    Line(u8, String),
    Bulk(Vec<u8>),
    Nil,
    Array(u8, Vec<Value>),
}

impl Value {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Line(kind, text) => out.extend(format!("{}{text}\r\n", *kind as char).bytes()),
            Self::Bulk(bytes) => {
                out.extend(format!("${}\r\n", bytes.len()).bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Self::Nil => out.extend(b"$-1\r\n"),
            Self::Array(kind, values) => {
                out.extend(format!("{}{}\r\n", *kind as char, values.len()).bytes());
                values.iter().for_each(|value| value.write(out));
            }
        }
    }

    fn leaves(&self, into: &mut Vec<Vec<u8>>) {
        match self {
            Self::Line(_, text) => into.push(text.clone().into_bytes()),
            Self::Bulk(bytes) => into.push(bytes.clone()),
            Self::Nil => into.push(Vec::new()),
            Self::Array(_, values) => values.iter().for_each(|value| value.leaves(into)),
        }
    }

    fn elements(&self) -> u64 {
        match self {
            Self::Nil => 0,
            Self::Array(_, values) => values.len() as u64,
            _ => 1,
        }
    }

    fn any() -> impl Strategy<Value = Self> {
        let leaf = prop_oneof![
            "[ -~]{0,12}".prop_map(|text| Self::Line(b'+', text)),
            any::<i64>().prop_map(|number| Self::Line(b':', number.to_string())),
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(Self::Bulk),
            Just(Self::Nil),
        ];
        leaf.prop_recursive(4, 24, 4, |value| {
            let kind = prop_oneof![Just(b'*'), Just(b'~')];
            (kind, proptest::collection::vec(value, 0..4))
                .prop_map(|(kind, values)| Self::Array(kind, values))
        })
    }
}

proptest! {
    #[test]
    fn what_a_server_writes_is_read_however_it_is_split(
        values in proptest::collection::vec(Value::any(), 0..6),
        step in 1..40_usize,
    ) {
        let mut stream = Vec::new();
        values.iter().for_each(|value| value.write(&mut stream));
        let replies = read(&stream, step).unwrap();
        prop_assert_eq!(replies.len(), values.len());
        for ((reply, texts), value) in replies.iter().zip(&values) {
            let mut leaves = Vec::new();
            value.leaves(&mut leaves);
            prop_assert_eq!(reply.elements, value.elements());
            prop_assert_eq!(reply.bytes, leaves.iter().map(|leaf| leaf.len() as u64).sum::<u64>());
            prop_assert_eq!(texts.0.join(&b"\n"[..]), leaves.join(&b"\n"[..]));
        }
    }

    #[test]
    fn any_bytes_are_the_same_whole_and_split(
        input in proptest::collection::vec(
            prop_oneof![
                Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'2'), Just(b'*'), Just(b'$'),
                Just(b'-'), Just(b'+'), Just(b'|'), Just(b'>'), Just(b'%'), any::<u8>(),
            ],
            0..200,
        ),
        step in 1..20_usize,
    ) {
        prop_assert_eq!(read(&input, input.len()), read(&input, step));
    }
}
