//! The scanner of answers beside hyper's: both read the same bytes, split in the same
//! way, and must see the same. Where they differ on purpose, [`DIFFERENCES`] says why.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod readers;
mod script;
mod server;

use http::Method;
use proptest::prelude::*;

use readers::{Seen, hyper_reads, read_with_hyper, scan};

/// Answers that are read differently on purpose: (answer, ours is refused, hyper's is
/// refused, why). Where both accept, they differ in `keep_alive`.
const DIFFERENCES: &[(&str, bool, bool, &str)] = &[
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        false,
        false,
        "RFC 9112 section 6.3 rule 3: the connection is closed behind both fields; hyper goes on",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        true,
        false,
        "section 7.1: chunked is applied once; hyper looks at the last coding only",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        true,
        false,
        "section 7: chunked has no parameters; to hyper it is an unknown coding, until the end",
    ),
];

/// Both read the same, split anywhere.
fn compare(method: &Method, parts: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let ours = scan(method, parts);
    let hyper = hyper_reads(
        method,
        parts,
        ours.as_ref().is_some_and(|(_, itself)| *itself),
    );
    prop_assert_eq!(ours.map(|(seen, _)| seen), hyper);
    Ok(())
}

fn split(answer: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
    at.extend([0, answer.len()]);
    at.sort_unstable();
    at.windows(2)
        .map(|ends| answer[ends[0]..ends[1]].to_vec())
        .collect()
}

/// By hand: what matters, whole and byte by byte.
#[test]
fn a_corpus_is_read_alike() {
    let get = Method::GET;
    let head = Method::HEAD;
    let corpus: &[(&Method, &str)] = &[
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 200 OK\nContent-Length: 1\n\nx"),
        (&get, "\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        (&get, "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx"),
        (&get, "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx",
        ),
        (&get, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        (
            &get,
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
        ),
        (&get, "HTTP/1.0 200 OK\r\n\r\nuntil the end"),
        (
            &get,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        (&get, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        (
            &get,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ),
        (&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (
            &head,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (&head, "HTTP/1.1 200 OK\r\n\r\n"),
        (
            &get,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        ),
        (
            &get,
            "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nuntil the end",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3 \t\r\nabc\r\n000\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\na",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
        ),
        (&get, "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "ICY 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
        (&get, "HTTP/1.1 200 OK\r\nA: \u{e9}\u{7f}\r\n\r\n"),
        (&get, ""),
    ];
    for (method, answer) in corpus {
        compare(method, &[answer.as_bytes().to_vec()])
            .unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        let bytes: Vec<Vec<u8>> = answer.bytes().map(|byte| vec![byte]).collect();
        compare(method, &bytes).unwrap_or_else(|error| panic!("{answer:?} by bytes: {error}"));
    }
}

/// The table is true: whoever changes one of the readers has to change it too.
#[test]
fn wanted_differences_are_as_the_table_says() {
    for (answer, our_refusal, hyper_refusal, why) in DIFFERENCES {
        let parts = [answer.as_bytes().to_vec()];
        let ours = scan(&Method::GET, &parts).map(|(seen, _)| seen);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let closed = runtime.block_on(read_with_hyper(&Method::GET, &parts, true));
        assert_eq!(
            (ours.is_none(), closed.is_none()),
            (*our_refusal, *hyper_refusal),
            "{why}"
        );
        if let (Some(ours), Some(_)) = (ours, closed) {
            let open = runtime
                .block_on(read_with_hyper(&Method::GET, &parts, false))
                .unwrap();
            assert!(!ours.keep_alive && open.keep_alive, "{why}");
            assert_eq!(
                ours,
                Seen {
                    keep_alive: false,
                    ..open
                },
                "{why}"
            );
        }
    }
}

/// Answers made of pieces that are mostly right.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let fields = prop::collection::vec(
        prop::sample::select(vec![
            "Server: x\r\n",
            "x-a:b\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive\r\n",
            "Date: Sat, 21 Nov 2026 13:24:19 GMT\r\n",
            "X-Bare: lf\n",
            "bad field\r\n",
        ]),
        0..4,
    );
    let framed = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|body| {
            (format!("Content-Length: {}\r\n", body.len()), body)
        }),
        2 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|body| (String::new(), body)),
        8 => (
            prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 0..5),
            prop::sample::select(vec!["", ";x", " ;y=\"z\"", "\t"]),
            prop::sample::select(vec!["", "A: b\r\n", "A: b\r\nC:  d \r\n"]),
        ).prop_map(|(chunks, extension, trailers)| {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}{extension}\r\n", chunk.len()).into_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend(format!("0\r\n{trailers}\r\n").into_bytes());
            ("Transfer-Encoding: chunked\r\n".to_owned(), body)
        }),
        1 => Just(("Content-Length: 10\r\n".to_owned(), b"short".to_vec())),
    ];
    let interim = prop::sample::select(vec!["", "", "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"]);
    let status = prop::sample::select(vec![200, 201, 206, 301, 404, 500, 503]);
    (interim, 0..=9, status, fields, framed).prop_map(|(interim, minor, status, fields, framed)| {
        // Every tenth is of version 1.0, and chunked is no part of that.
        let minor = u8::from(minor > 0);
        let (length, body) = framed;
        let head = format!(
            "{interim}HTTP/1.{minor} {status} x\r\n{}{length}\r\n",
            fields.concat()
        );
        [head.as_bytes(), &body].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn generated_answers_are_read_alike(
        answer in answers(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        compare(&Method::GET, &split(&answer, &cuts))?;
    }
}
