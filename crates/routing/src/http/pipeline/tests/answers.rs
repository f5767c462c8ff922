//! Answers towards clients.

use proptest::prelude::*;
use wire::http1::{ResponseScanner, Sink};

use super::*;

const GET: &str = "GET / HTTP/1.1\nHost: a.ex.com\n\n";

fn answered(request: &str, status: u16, fields: &str, body: BodyLength) -> (String, Promise) {
    let mut fixture = Fixture::new(|_| {});
    fixture.sent(request);
    fixture.answered(status, fields, body)
}

#[test]
fn bodies_are_framed_for_the_client() {
    let head = "HEAD / HTTP/1.1\nHost: a.ex.com\n\n";
    let old = "GET / HTTP/1.0\nHost: a.ex.com\n\n";
    let kept = "GET / HTTP/1.0\nHost: a.ex.com\nConnection: keep-alive\n\n";
    let length = "Content-Length: 5\r\n";
    let chunks = "Transfer-Encoding: chunked\r\n";
    let five = BodyLength::Exactly(5);
    for (request, status, fields, body, framed, keep_alive, says) in [
        (
            GET,
            200,
            length,
            five,
            ClientBody::Exactly(5),
            true,
            "Content-Length: 5",
        ),
        (
            GET,
            200,
            chunks,
            BodyLength::Chunked,
            ClientBody::Chunked,
            true,
            chunks,
        ),
        (
            GET,
            200,
            "",
            BodyLength::UntilClose,
            ClientBody::Chunked,
            true,
            chunks,
        ),
        (
            GET,
            204,
            "",
            BodyLength::Exactly(0),
            ClientBody::None,
            true,
            "",
        ),
        (
            GET,
            304,
            length,
            BodyLength::Exactly(0),
            ClientBody::None,
            true,
            "",
        ),
        (
            head,
            200,
            length,
            BodyLength::Exactly(0),
            ClientBody::None,
            true,
            "Content-Length: 5",
        ),
        (
            head,
            200,
            chunks,
            BodyLength::Exactly(0),
            ClientBody::None,
            true,
            "",
        ),
        (
            old,
            200,
            length,
            five,
            ClientBody::Exactly(5),
            false,
            "Content-Length: 5",
        ),
        (
            old,
            200,
            chunks,
            BodyLength::Chunked,
            ClientBody::UntilClose,
            false,
            "",
        ),
        (
            kept,
            200,
            length,
            five,
            ClientBody::Exactly(5),
            true,
            "Connection: keep-alive",
        ),
        (
            kept,
            200,
            "",
            BodyLength::UntilClose,
            ClientBody::UntilClose,
            false,
            "",
        ),
    ] {
        let (answer, promise) = answered(request, status, fields, body);
        assert_eq!(
            promise,
            Promise {
                body: framed,
                keep_alive
            },
            "{request}{answer}"
        );
        assert!(answer.contains(says), "{answer}");
        let framing =
            answer.matches("Content-Length").count() + answer.matches("Transfer-").count();
        assert_eq!(
            framing,
            usize::from(
                says.contains("-Length")
                    || says == chunks
                    || request == kept && framed == ClientBody::Exactly(5)
            ),
            "{answer}"
        );
        assert!(!(promise.keep_alive && answer.contains("Connection: close")));
    }
}

#[test]
fn an_answer_loses_what_is_of_the_hop() {
    let fields = "Connection: x-gone\r\nX-Gone: 1\r\nKeep-Alive: 1\r\nProxy-Authenticate: x\r\n\
                  Upgrade: h2c\r\nTE: x\r\nX-CF-Proxy-Signature: s\r\nContent-Length: 2\r\n\
                  content-length: 2\r\nserver: x\r\ndate: then\r\nx-vcap-request-id: mine\r\n";
    let (answer, _) = answered(GET, 299, fields, BodyLength::Exactly(2));
    assert_eq!(
        answer,
        "HTTP/1.1 299 status code 299\r\nContent-Length: 2\r\nDate: then\r\nServer: x\r\n\
         X-Vcap-Request-Id: mine\r\n\r\n"
    );
}

#[test]
fn an_answer_that_is_not_to_be_kept_says_so_in_both_ways() {
    let fields = "Pragma: no-cache\r\nContent-Length: 2\r\n";
    let (answer, _) = answered(GET, 200, fields, BodyLength::Exactly(2));
    assert!(
        answer.contains("\r\nCache-Control: no-cache\r\n"),
        "{answer}"
    );
}

#[test]
fn a_request_that_is_framed_twice_ends_its_connection_without_a_word() {
    let request = "POST / HTTP/1.1\nHost: a.ex.com\nContent-Length: 4\n\
                   Transfer-Encoding: chunked\n\n";
    let (answer, promise) = answered(request, 200, "", BodyLength::Exactly(0));
    assert!(
        !promise.keep_alive && !answer.contains("Connection"),
        "{answer}"
    );
}

#[test]
fn rewriting_removes_and_adds_where_nothing_is() {
    let mut fixture = Fixture::new(|settings| {
        settings.headers.remove = vec!["SERVER".to_owned(), "date".to_owned()];
        settings.headers.add = vec![
            ("x-added".to_owned(), "a".to_owned()),
            ("X-There".to_owned(), "b".to_owned()),
            ("X-Added".to_owned(), "c".to_owned()),
        ];
    });
    fixture.sent(GET);
    let fields = "Server: x\r\nDate: then\r\nX-There: mine\r\nX-Vcap-Request-Id: i\r\n\
                  Content-Length: 0\r\n";
    let (answer, _) = fixture.answered(200, fields, BodyLength::Exactly(0));
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Added: a\r\nX-Added: c\r\nX-There: mine\r\n\
         X-Vcap-Request-Id: i\r\nDate: Sat, 21 Nov 2026 08:17:20 GMT\r\n\r\n"
    );
}

#[test]
fn settings_cannot_break_the_framing() {
    let mut fixture = Fixture::new(|settings| {
        settings.headers.remove = vec!["content-length".to_owned()];
        let forged = |name: &str| (name.to_owned(), "1".to_owned());
        settings.headers.add = vec![forged("content-LENGTH"), forged("Transfer-Encoding")];
    });
    fixture.sent(GET);
    let (answer, promise) = fixture.answered(200, "Content-Length: 5\r\n", BodyLength::Exactly(5));
    assert_eq!(promise.body, ClientBody::Chunked);
    assert!(
        answer.ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "{answer}"
    );
    assert!(!answer.contains("Content-Length"), "{answer}");
}

#[test]
fn an_own_answer_to_head_tells_the_length_of_a_body_only() {
    let length = |request: &str, most: usize| {
        let mut fixture = Fixture::new(|settings| settings.request_head_bytes = most);
        let answer = fixture.refused(request);
        value(&answer, "Content-Length").map(str::to_owned)
    };
    let none = "404 Not Found: Requested route ('no.ex.com') does not exist.\n".len();
    let head = "HEAD / HTTP/1.1\nHost: no.ex.com\n\n";
    assert_eq!(length(head, 1000), Some(none.to_string()));
    // Too large a head is answered without a body.
    assert_eq!(length("HEAD / HTTP/1.1\nHost: a.ex.com\n\n", 10), None);
    assert_eq!(length(GET, 10), Some("0".to_owned()));
}

#[test]
fn an_empty_body_without_a_length_gets_one() {
    let (answer, promise) = answered(GET, 200, "", BodyLength::Exactly(0));
    assert_eq!(promise.body, ClientBody::Exactly(0));
    assert!(answer.contains("Content-Length: 0\r\n"), "{answer}");
}

#[test]
fn cookies_bind_as_the_application_says() {
    let cookie = |cookies: &str, set: &str| {
        let mut fixture = Fixture::new(|settings| settings.sticky.auth_negotiate = true);
        fixture.sent(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{cookies}\n"));
        let (answer, _) = fixture.answered(200, set, BodyLength::UntilClose);
        let mut own = answer
            .lines()
            .filter(|line| line.starts_with("Set-Cookie: __VCAP_ID__"));
        let found = own
            .next()
            .map(|line| line["Set-Cookie: ".len()..].to_owned());
        assert_eq!(own.next(), None);
        found
    };
    let some = |text: &str| Some(format!("__VCAP_ID__=instance-guid; Path=/{text}"));
    assert_eq!(cookie("", ""), None);
    assert_eq!(cookie("", "Set-Cookie: other=1\r\n"), None);
    assert_eq!(
        cookie("", "Set-Cookie: JSESSIONID=1\r\n"),
        some("; HttpOnly")
    );
    let all = "Set-Cookie: JSESSIONID=1; Secure; samesite=NONE; Partitioned; Max-Age=-1; \
               Expires=Wed, 21-Oct-2026 07:28:00 GMT\r\n";
    let like = "; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=0; HttpOnly; Secure; \
                SameSite=None; Partitioned";
    assert_eq!(cookie("", all), some(like));
    let stale = "Cookie: JSESSIONID=1; __VCAP_ID__=gone\n";
    assert_eq!(cookie(stale, ""), some("; HttpOnly"));
    let same = "Cookie: JSESSIONID=1; __VCAP_ID__=instance-guid\n";
    assert_eq!(cookie(same, ""), None);
    assert_eq!(
        cookie(stale, "Set-Cookie: __VCAP_ID__=own\r\n").as_deref(),
        Some("__VCAP_ID__=own")
    );
    let negotiate = cookie("", "WWW-Authenticate: Negotiate\r\n");
    assert_eq!(negotiate, some("; Max-Age=60; HttpOnly; SameSite=Strict"));
    // The first one counts.
    let (basic, negotiate) = (
        "WWW-Authenticate: Basic\r\n",
        "WWW-Authenticate: Negotiate\r\n",
    );
    assert_eq!(cookie("", &format!("{basic}{negotiate}")), None);
    assert!(cookie("", &format!("{negotiate}{basic}")).is_some());
    // What is no cookie binds nobody.
    assert_eq!(cookie("", "Set-Cookie: JSESSIONID=\u{e9}\r\n"), None);
    assert_eq!(cookie("", "Set-Cookie: JSESSIONID\r\n"), None);
    assert!(cookie("", "Set-Cookie: JSESSIONID=\r\n").is_some());
}

#[test]
fn metadata_keeps_attributes_for_another_instance() {
    let cookies = |asked: &str, fields: &str| {
        let mut fixture = Fixture::new(|settings| {
            settings.sticky.metadata = true;
            settings.sticky.auth_negotiate = true;
        });
        fixture.sent(&format!("GET / HTTP/1.1\nHost: a.ex.com\n{asked}\n"));
        let (answer, _) = fixture.answered(200, fields, BodyLength::Exactly(0));
        let own = answer.lines().filter_map(|line| {
            let cookie = line.strip_prefix("Set-Cookie: __VCAP_ID")?;
            Some(cookie.to_owned())
        });
        own.collect::<Vec<_>>()
    };
    let session = "Set-Cookie: JSESSIONID=1; Secure; SameSite=Lax; Max-Age=60\r\n";
    let like = "Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax";
    let until = NOW.wall / 1_000_000_000 + 60;
    assert_eq!(
        cookies("", session),
        [
            format!("__=instance-guid; {like}"),
            format!("_META__=secure&maxage={until}&samesite=lax; {like}"),
        ]
    );
    // An application that moves to partitioned cookies ends the other one.
    let moving = "Set-Cookie: JSESSIONID=1; Partitioned\r\nSet-Cookie: JSESSIONID=; Max-Age=0\r\n";
    assert_eq!(
        cookies("", moving),
        [
            "__=instance-guid; Path=/; HttpOnly; Partitioned",
            "_META__=partitioned; Path=/; HttpOnly; Partitioned",
            "__=instance-guid; Path=/; Max-Age=0; HttpOnly",
            "_META__=maxage=-1; Path=/; Max-Age=0; HttpOnly",
        ]
    );
    let kept = format!("__VCAP_ID_META__=secure&maxage={until}&samesite=strict");
    let stale = format!("Cookie: JSESSIONID=1; __VCAP_ID__=gone; {kept}\n");
    let again = "__=instance-guid; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Strict";
    assert_eq!(cookies(&stale, ""), [again]);
    // What is new counts more than what was kept.
    assert_eq!(cookies(&stale, session).len(), 2);
    let plain = "Cookie: JSESSIONID=1; __VCAP_ID__=gone\n";
    assert_eq!(cookies(plain, ""), ["__=instance-guid; Path=/; HttpOnly"]);
    let same = format!("Cookie: JSESSIONID=1; __VCAP_ID__=instance-guid; {kept}\n");
    assert_eq!(cookies(&same, ""), [""; 0]);
    assert_eq!(
        cookies(&stale, "Set-Cookie: __VCAP_ID__=own\r\n"),
        ["__=own"]
    );
    let negotiate = "__=instance-guid; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
    assert_eq!(
        cookies(&stale, "WWW-Authenticate: Negotiate\r\n"),
        [negotiate]
    );
}

#[test]
fn interim_answers_lose_their_framing() {
    let fixture = Fixture::new(|_| {});
    let mut out = Vec::new();
    let fields = b"Link: </a.css>\r\nContent-Length: 5\r\nConnection: close\r\n";
    fixture.pipeline.write_interim(103, fields, &mut out);
    assert_eq!(out, b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
}

#[test]
fn interim_answers_are_rewritten_too() {
    let fixture = Fixture::new(|settings| {
        settings.headers.remove = vec!["Server".to_owned()];
        settings.headers.add = vec![("X-Added".to_owned(), "a".to_owned())];
    });
    let mut out = Vec::new();
    let fields = b"Server: secret\r\nLink: </a.css>\r\nX-CF-Proxy-Signature: secret\r\n";
    fixture.pipeline.write_interim(103, fields, &mut out);
    let expected = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-Added: a\r\n\r\n";
    assert_eq!(out, expected);
}

#[test]
fn trailers_lose_what_may_not_be_one() {
    let mut fixture = Fixture::new(|_| {});
    let mut out = Vec::new();
    let fields = b"x-b: 1\r\nContent-Length: 5\r\nX-A: 2\r\nIf-Match: x\r\nHost: y\r\n";
    fixture
        .pipeline
        .write_trailers(fields, &mut fixture.exchange, &mut out);
    assert_eq!(out, b"X-A: 2\r\nX-B: 1\r\n");
}

/// What a scanner tells of an answer.
#[derive(Default)]
struct Seen {
    status: u16,
    body: u64,
}

impl Sink for Seen {
    fn head(&mut self, status: u16, _: &[u8]) {
        self.status = status;
    }
    fn body(&mut self, part: &[u8]) {
        self.body += part.len() as u64;
    }
}

proptest! {
    /// Whatever a backend's fields are, what the client gets is one head, sorted, whose body
    /// ends where it was promised to end.
    #[test]
    fn a_client_reads_what_was_promised(
        fields in prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,20}", "[ -~]{0,40}"), 0..20),
        status in prop_oneof![Just(200_u16), Just(204), Just(304), Just(404), Just(599)],
        head in any::<bool>(),
        old in any::<bool>(),
        body in prop_oneof![
            (1_u64..5000).prop_map(BodyLength::Exactly),
            Just(BodyLength::Chunked),
            Just(BodyLength::UntilClose),
        ],
    ) {
        let mut lines = String::new();
        for (name, value) in &fields {
            let name_is = |other: &str| name.eq_ignore_ascii_case(other);
            if !name_is("Content-Length") && !name_is("Transfer-Encoding") {
                lines.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        let method = if head { "HEAD" } else { "GET" };
        let minor = u8::from(!old);
        let request = format!("{method} / HTTP/1.{minor}\nHost: a.ex.com\n\n");
        let (mut answer, promise) = answered(&request, status, &lines, body);
        let names: Vec<_> = answer
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(|line| line.split(':').next().unwrap().to_owned())
            .collect();
        let own = names.iter().rposition(|name| {
            !["Connection", "Transfer-Encoding"].contains(&&**name)
        });
        let own = own.map_or(0, |last| if names[last] == "Date" { last } else { last + 1 });
        prop_assert!(names[..own].is_sorted(), "{answer}");

        let expected = match promise.body {
            ClientBody::None | ClientBody::Tunnel => 0,
            ClientBody::Exactly(length) => {
                answer.push_str(&"x".repeat(length as usize));
                length
            }
            ClientBody::Chunked => {
                answer.push_str("3\r\nabc\r\n0\r\n\r\n");
                3
            }
            ClientBody::UntilClose => {
                answer.push_str("abcd");
                4
            }
        };
        let mut scanner = ResponseScanner::new(Limits::default());
        scanner.expect(wire::http1::Expect::of_method(method));
        let mut seen = Seen::default();
        let scan = scanner.scan(answer.as_bytes(), &mut seen).unwrap();
        let complete = match scan.complete {
            Some(complete) => complete,
            None => scanner.end(&mut seen).unwrap(),
        };
        prop_assert_eq!(scan.consumed, answer.len());
        prop_assert_eq!((seen.status, seen.body), (status, expected));
        prop_assert_eq!(complete.keep_alive && !old, promise.keep_alive);
    }
}
