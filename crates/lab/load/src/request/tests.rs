//! Requests as they are written, judged and refused.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::workload::Target;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap().0
}

fn http() -> Target {
    target("http://example.com:8080")
}

fn get(path: &str) -> Step {
    Step::new("get", "GET", path)
}

fn compose(mix: &Mix) -> Composer {
    Composer::new(mix, &http(), 1).unwrap_or_else(|error| panic!("{error}"))
}

fn composed(step: Step) -> Composer {
    compose(&Mix::of(step))
}

fn refused(step: Step) -> RequestError {
    Composer::new(&Mix::of(step), &http(), 1).unwrap_err()
}

fn written(composer: &Composer, visit: &Visit) -> String {
    let mut out = Vec::new();
    composer.write(visit, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn answer<'a>(status: u16, fields: &'a str, body: &'a str) -> Answer<'a> {
    Answer {
        status,
        fields: fields.as_bytes(),
        body: body.as_bytes(),
        body_bytes: body.len() as u64,
    }
}

/// A mix of one journey.
fn journey(steps: Vec<Step>) -> Mix {
    Mix {
        journeys: vec![Journey {
            name: "user".into(),
            weight: 1.0,
            steps,
        }],
        tables: BTreeMap::new(),
    }
}

fn users() -> BTreeMap<String, Table> {
    let table =
        Table::parse("email,path,note\na@x,/a,\"1\r\n2\"\nb@x,/b b,ok\nc@x,https://h/c?d=e#f,ok\n");
    BTreeMap::from([("users".to_owned(), table.unwrap())])
}

const AGENT: &str = concat!("User-Agent: headroom/", env!("CARGO_PKG_VERSION"), "\r\n");

#[test]
fn a_constant_request_is_one_piece() {
    let composer = composed(get("/a?b={{c}}"));
    let expected = format!("GET /a?b=%7Bc%7D HTTP/1.1\r\nHost: example.com:8080\r\n{AGENT}\r\n");
    assert_eq!(composer.plain().unwrap(), expected.as_bytes());
    let visit = composer.begin(5);
    assert_eq!(written(&composer, &visit), expected);
    assert_eq!(composer.kinds(), ["get"]);
    assert_eq!(composer.needs(&visit), Needs::default());
}

#[test]
fn bodies_have_a_length_and_given_fields_win() {
    let mut step = Step::new("post", "", "/");
    step.body = Body::Template(r#"{"n": {"m": 1}}"#.into());
    step.headers = vec![
        ("Content-Type".into(), "application/json".into()),
        ("host".into(), "other".into()),
        ("user-agent".into(), "me".into()),
    ];
    let composer = composed(step.clone());
    let expected = "POST / HTTP/1.1\r\nHost: other\r\nContent-Type: application/json\r\n\
                    user-agent: me\r\nContent-Length: 15\r\n\r\n{\"n\": {\"m\": 1}}";
    assert_eq!(composer.plain().unwrap(), expected.as_bytes());

    step.body = Body::Template("n={seq}".into());
    let composer = composed(step);
    assert!(composer.plain().is_none());
    let mut out = b"kept".to_vec();
    composer.write(&composer.begin(1_234), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("keptPOST / HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with("Content-Length: 6\r\n\r\nn=1234"), "{text}");
    let empty = composed(Step::new("put", "PUT", "/"));
    assert!(
        empty
            .plain()
            .unwrap()
            .ends_with(b"Content-Length: 0\r\n\r\n")
    );
}

#[test]
fn variables_have_their_values() {
    let path = "/{uniform 5 7}/{zipf 1.1 10}/{seq}/{uuid}/{random 20}/{uniform -3 -3}";
    let composer = composed(get(path));
    let mut seen = std::collections::BTreeSet::new();
    for arrival in 0..200 {
        let text = written(&composer, &composer.begin(arrival));
        let parts: Vec<&str> = text.split([' ', '/']).skip(2).take(6).collect();
        seen.insert(parts[0].to_owned());
        assert!(
            (5..=7).contains(&parts[0].parse::<u32>().unwrap()),
            "{text}"
        );
        assert!(
            (1..=10).contains(&parts[1].parse::<u32>().unwrap()),
            "{text}"
        );
        assert_eq!(parts[2], arrival.to_string());
        let uuid: Vec<usize> = parts[3].split('-').map(str::len).collect();
        assert_eq!(uuid, [8, 4, 4, 4, 12]);
        assert_eq!(parts[3].as_bytes()[14], b'4');
        assert!(b"89ab".contains(&parts[3].as_bytes()[19]));
        assert!(parts[4].len() == 20 && parts[4].bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(parts[5], "-3");
    }
    assert_eq!(seen.len(), 3);
    let widest = composed(get(&format!("/{{uniform {} {}}}", i64::MIN, i64::MAX)));
    assert!(written(&widest, &widest.begin(0)).starts_with("GET /"));
}

#[test]
fn two_variables_of_the_same_form_are_drawn_apart() {
    let composer = composed(get("/{uniform 0 1000000000}/{uniform 0 1000000000}"));
    let text = written(&composer, &composer.begin(1));
    let parts: Vec<&str> = text.split([' ', '/']).skip(2).take(2).collect();
    assert_ne!(parts[0], parts[1]);
}

#[test]
fn rows_are_taken_in_order_or_at_random() {
    let mut mix = Mix::of(get("/?q={line users.email}"));
    mix.tables = users();
    let composer = compose(&mix);
    for (arrival, email) in [(0, "a%40x"), (1, "b%40x"), (5, "c%40x")] {
        let text = written(&composer, &composer.begin(arrival));
        assert!(text.starts_with(&format!("GET /?q={email} ")), "{text}");
    }
    // All columns of a table come from the same row.
    mix.journeys[0].steps[0].path = "/{line users.email random}/{line users.path random}".into();
    let composer = compose(&mix);
    let mut seen = std::collections::BTreeSet::new();
    for arrival in 0..50 {
        let text = written(&composer, &composer.begin(arrival));
        let path = text.split(' ').nth(1).unwrap().to_owned();
        assert_eq!(
            path.as_bytes()[1],
            path.split("%2F").last().unwrap().as_bytes()[0],
            "{path}"
        );
        seen.insert(path);
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_column_may_hold_whole_paths() {
    let mut mix = Mix::of(get("{line users.path}&x={seq}"));
    mix.tables = users();
    let composer = compose(&mix);
    let path = |arrival| {
        let text = written(&composer, &composer.begin(arrival));
        text.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(
        [path(0), path(1), path(2)],
        ["/a&x=0", "/b%20b&x=1", "/c?d=e&x=2"]
    );
    mix.journeys[0].steps[0].path = "{line users.email}".into();
    let error = Composer::new(&mix, &http(), 1).unwrap_err();
    assert!(error.message.contains("row 1"), "{error}");
}

#[test]
fn nothing_can_be_injected_into_a_head() {
    let mut step = get("/");
    step.headers
        .push(("X-Note".into(), "{line users.note}".into()));
    let mut mix = Mix::of(step);
    mix.tables = users();
    let error = Composer::new(&mix, &http(), 1).unwrap_err();
    assert!(
        error
            .message
            .contains("row 1 of this column has a line break"),
        "{error}"
    );

    let mut first = Step::new("first", "GET", "/");
    first.take = vec![Take::parse("v = json /v").unwrap()];
    let mut second = Step::new("second", "GET", "/{v}");
    second.headers.push(("X-Note".into(), "{v}".into()));
    let composer = compose(&journey(vec![first, second]));
    let mut visit = composer.begin(0);
    composer.finish(&mut visit, &answer(200, "", r#"{"v": "a\r\nEvil: 1"}"#));
    let mut out = b"kept".to_vec();
    let error = composer.write(&visit, &mut out).unwrap_err();
    assert!(error.to_string().contains("line break"), "{error}");
    assert_eq!(out, b"kept");
}

#[test]
fn requests_depend_on_seed_and_arrival_only() {
    let mix = Mix::of(get("/{uniform 0 1000000}/{uuid}/{zipf 1.2 1000}"));
    let (one, other) = (compose(&mix), compose(&mix));
    let forwards: Vec<String> = (0..50).map(|k| written(&one, &one.begin(k))).collect();
    let backwards: Vec<String> = (0..50)
        .rev()
        .map(|k| written(&other, &other.begin(k)))
        .collect();
    assert!(forwards.iter().eq(backwards.iter().rev()));
    let reseeded = Composer::new(&mix, &http(), 2).unwrap();
    assert_ne!(written(&reseeded, &reseeded.begin(0)), forwards[0]);
}

#[test]
fn journeys_are_chosen_by_weight() {
    let mut mix = Mix::of(Step::new("a", "GET", "/a"));
    mix.journeys
        .extend(Mix::of(Step::new("b", "GET", "/b")).journeys);
    mix.journeys[0].weight = 3.0;
    let composer = compose(&mix);
    assert_eq!(composer.kinds(), ["a", "b"]);
    let runs = 40_000;
    let often = (0..runs)
        .filter(|&k| composer.kind(&composer.begin(k)) == 0)
        .count();
    // 30,000 expected, standard deviation 87.
    assert!((29_600..30_400).contains(&often), "{often}");
    assert!(composer.plain().is_none());
}

#[test]
fn a_value_that_is_missing_ends_the_journey() {
    let mut first = Step::new("first", "GET", "/");
    first.take = vec![
        Take::parse("token = json /auth/token").unwrap(),
        Take::parse("page = regex next=(.+)").unwrap(),
    ];
    let composer = compose(&journey(vec![
        first,
        Step::new("second", "GET", "/{token}"),
    ]));
    let end = |body: &str| {
        let mut visit = composer.begin(0);
        assert!(composer.needs(&visit).body);
        let end = composer.finish(&mut visit, &answer(200, "", body));
        assert_eq!((end.next, composer.kind(&visit)), (Next::Done, 0), "{body}");
        composer.refusals()[end.refusal.unwrap()].clone()
    };
    let (token, page) = (
        "no value for token = json /auth/token",
        "no value for page = regex next=(.+)",
    );
    for body in ["", "no json", "{}", r#"{"auth": {"token": null}}"#] {
        assert_eq!(end(body), token, "{body}");
    }
    assert_eq!(end(r#"{"auth": {"token": 1}}"#), page);
    let long = format!(r#"{{"auth": {{"token": "{}"}}}}"#, "x".repeat(70_000));
    assert_eq!(end(&long), token);
}

#[test]
fn a_whole_journey() {
    let mut login = Step::new("login", "POST", "/login");
    login.think = Duration::from_millis(20);
    login.take = vec![
        Take::parse("token = json /auth/token").unwrap(),
        Take::parse("id = header x-id").unwrap(),
    ];
    let mut order = Step::new("order", "POST", "/orders/{id}?t={token}");
    order.body = Body::Template(r#"{"token": "{token}"}"#.into());
    order.take = vec![Take::parse("page = regex next=(\\S+)").unwrap()];
    let composer = compose(&journey(vec![
        login,
        order,
        Step::new("next", "GET", "{page}"),
    ]));

    let mut visit = composer.begin(9);
    let fields = "X-Id: a b\r\nSet-Cookie: s=1; Path=/\r\n";
    let end = composer.finish(
        &mut visit,
        &answer(200, fields, r#"{"auth": {"token": 42}}"#),
    );
    assert_eq!(
        end,
        StepEnd {
            refusal: None,
            next: Next::After(Duration::from_millis(20))
        }
    );
    assert_eq!(composer.kind(&visit), 1);
    let text = written(&composer, &visit);
    assert!(
        text.starts_with("POST /orders/a%20b?t=42 HTTP/1.1\r\n"),
        "{text}"
    );
    assert!(
        text.contains("\r\nCookie: s=1\r\nContent-Length: 15\r\n\r\n{\"token\": \"42\"}"),
        "{text}"
    );

    let fields = "Set-Cookie: s=; Max-Age=0\r\nset-cookie: t=2\r\n";
    composer.finish(
        &mut visit,
        &answer(201, fields, "next=https://elsewhere/p/2?q=1 end"),
    );
    let text = written(&composer, &visit);
    assert!(text.starts_with("GET /p/2?q=1 HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("\r\nCookie: t=2\r\n\r\n"), "{text}");
    let parts = composer.parts(&visit).unwrap();
    assert_eq!(
        (parts.method, &*parts.path, &*parts.authority),
        ("GET", "/p/2?q=1", "example.com:8080")
    );
    assert_eq!(parts.headers[1], ("cookie", "t=2".into()));
    assert_eq!(composer.needs(&visit), Needs::default());
    let end = composer.finish(&mut visit, &answer(200, "", ""));
    assert_eq!(
        end,
        StepEnd {
            refusal: None,
            next: Next::Done
        }
    );
}

#[test]
fn assertions_decide() {
    let judge = |assertions: &[&str], answer: &Answer<'_>| {
        let mut step = get("/");
        step.assertions = assertions
            .iter()
            .map(|text| Assertion::parse(text).unwrap())
            .collect();
        let composer = composed(step);
        let end = composer.finish(&mut composer.begin(0), answer);
        end.refusal.map(|index| composer.refusals()[index].clone())
    };
    let fine = answer(200, "Content-Type: text/html; x\n", "hello world");
    let missing = answer(404, "", "");
    let cases: [(&[&str], &Answer<'_>, Option<&str>); 14] = [
        (&[], &fine, None),
        (&[], &missing, Some("status 400 or above")),
        (&["status 404"], &missing, None),
        (&["status 200..299, 404"], &missing, None),
        (&["status 2xx"], &missing, Some("status 200..299")),
        (&["size 0"], &missing, Some("status 400 or above")),
        (&["header content-type contains html"], &fine, None),
        (
            &["header Content-Type contains json"],
            &fine,
            Some("header Content-Type contains json"),
        ),
        (
            &["header Accept contains x"],
            &fine,
            Some("header Accept contains x"),
        ),
        (&["body contains lo wo"], &fine, None),
        (&["body contains low"], &fine, Some("body contains low")),
        (&["body matches ^hello\\b", "size 11"], &fine, None),
        (&["body matches ^world"], &fine, Some("body matches ^world")),
        (&["size 12..20"], &fine, Some("size 12..20")),
    ];
    for (assertions, answer, expected) in cases {
        assert_eq!(
            judge(assertions, answer).as_deref(),
            expected,
            "{assertions:?}"
        );
    }
    let cut = Answer {
        body_bytes: 2_000_000,
        ..fine
    };
    assert_eq!(
        judge(&["body contains hello"], &cut).as_deref(),
        Some("body above 1 MiB, not searched")
    );
    assert_eq!(judge(&["size 2MB"], &cut), None);
}

#[test]
fn other_protocols_have_messages_and_parts() {
    let mut step = Step::new("echo", "", "");
    step.body = Body::Template("ping {seq}\n".into());
    for url in ["tcp://h:7", "udp://h:7", "ws://h/chat"] {
        let composer = Composer::new(&Mix::of(step.clone()), &target(url), 1).unwrap();
        let visit = composer.begin(3);
        assert_eq!(written(&composer, &visit), "ping 3\n", "{url}");
        assert!(composer.is_text(&visit) && !composer.idempotent(&visit) || url.starts_with("ws"));
        let end = composer.finish(&mut composer.begin(3), &answer(0, "", "pong"));
        assert_eq!(end.refusal, None);
    }
    let composer = Composer::new(&Mix::of(step.clone()), &target("ws://h/"), 1).unwrap();
    assert_eq!(composer.parts(&composer.begin(0)).unwrap().path, "/");

    let mut call = Step::new("call", "", "/p.S/M");
    call.body = Body::Bytes(vec![8, 1]);
    call.headers = vec![("X-Key".into(), "{seq}".into())];
    let composer = Composer::new(&Mix::of(call), &target("grpc://h:50051"), 1).unwrap();
    let visit = composer.begin(4);
    let parts = composer.parts(&visit).unwrap();
    assert_eq!(
        (parts.method, &*parts.path, &*parts.authority),
        ("POST", "/p.S/M", "h:50051")
    );
    assert_eq!(parts.headers[0], ("x-key", "4".into()));
    assert_eq!(&*parts.body, [8, 1]);
    let end = composer.finish(&mut composer.begin(4), &answer(14, "", ""));
    assert_eq!(
        composer.refusals()[end.refusal.unwrap()],
        "grpc-status above 0"
    );
}

#[test]
fn methods_tell_what_may_be_done_again() {
    for (method, idempotent) in [
        ("GET", true),
        ("HEAD", true),
        ("DELETE", true),
        ("POST", false),
        ("PATCH", false),
    ] {
        let composer = composed(Step::new("x", method, "/"));
        let visit = composer.begin(0);
        assert_eq!(composer.idempotent(&visit), idempotent, "{method}");
        assert_eq!(composer.no_body(&visit), method == "HEAD");
    }
}

#[test]
fn wrong_templates_say_what_is_wrong_and_where() {
    let cases = [
        (
            "/{unform 0 9}",
            "unknown variable",
            "unform",
            Some("uniform"),
        ),
        ("/{uniform 9 0}", "above the second", "9 0", None),
        (
            "/{uniform 0}",
            "expected {uniform 0 100000}",
            "uniform 0",
            None,
        ),
        ("/{uniform a 9}", "whole number", "a", None),
        ("/{zipf 1000 5}", "exponent", "1000", None),
        ("/{zipf 1.1 0}", "from 1", "0", None),
        ("/{zipf x 9}", "number", "x", None),
        ("/{random 0}", "from 1", "0", None),
        ("/{seq 5}", "no parameters", "5", None),
        ("/{line emails}", "name of a table", "emails", None),
        ("/{line user.email}", "no table", "user", Some("users")),
        ("/{line users.mail}", "no column", "mail", Some("email")),
        ("/{line users.email rand}", "at random", "rand", None),
        ("/{token}", "unknown variable", "token", None),
        ("/a b", "a space", " ", Some("%20")),
        ("/{seq}/a b", "a space", " ", Some("%20")),
        ("/a#b", "fragment", "#", Some("%23")),
        ("/50%", "hexadecimal", "%", Some("%25")),
        ("a/b", "begins with /", "a", Some("/a")),
        ("{seq}", "begins with /", "seq", None),
        ("/{seq", "closing brace", "{seq", None),
    ];
    for (path, part, place, suggestion) in cases {
        let mut mix = Mix::of(get(path));
        mix.tables = users();
        let error = Composer::new(&mix, &http(), 1).expect_err(path);
        assert!(error.message.contains(part), "{path}: {error}");
        assert_eq!(error.text, path);
        assert_eq!(&path[error.at.clone()], place, "{path}: {error}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{path}: {error}");
        assert_eq!(error.place, "step \"get\", path");
    }
    let error = refused(get("/é{unform 0 9}"));
    assert_eq!(error.excerpt().unwrap(), "/é{unform 0 9}\n   ^^^^^^");
    assert!(
        error.to_string().ends_with("; did you mean \"uniform\"?"),
        "{error}"
    );
}

#[test]
fn wrong_steps_are_refused() {
    let with = |change: &dyn Fn(&mut Step)| {
        let mut step = get("/");
        change(&mut step);
        refused(step).to_string()
    };
    let field = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        with(&|step| step.headers.push((name.clone(), value.clone())))
    };
    let take = |name: &str, from: Source| {
        with(&|step| {
            step.take.push(Take {
                name: name.into(),
                from: from.clone(),
            })
        })
    };
    let cases = [
        (
            with(&|step| step.method = "get".into()),
            "did you mean \"GET\"?",
        ),
        (with(&|step| step.method = "G T".into()), "no method"),
        (with(&|step| step.method = "CONNECT".into()), "tunnel"),
        (with(&|step| step.name.clear()), "name of its own"),
        (field("A b", "x"), "letters, digits"),
        (field("A", "x\r\nB: y"), "line breaks"),
        (field("Content-Length", "5"), "leave this field out"),
        (field("Upgrade", "h2c"), "not supported"),
        (
            take("seq", Source::Header("A".into())),
            "a variable already",
        ),
        (take("a b", Source::Header("A".into())), "letters, digits"),
        (
            take("a", Source::Json("user.id".into())),
            "did you mean \"/user/id\"?",
        ),
        (take("a", Source::Regex("x".into())), "has no group"),
        (take("a", Source::Regex("(".into())), "regular expression"),
        (
            with(&|step| step.assertions.push(Assertion::BodyMatches("[".into()))),
            "regular expression",
        ),
        (
            with(&|step| step.assertions.push(Assertion::Status(Vec::new()))),
            "no status",
        ),
        (
            with(&|step| step.answer = AnswerEnd::Delimiter(Vec::new())),
            "missing",
        ),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "expected \"{part}\" in: {message}");
    }
    let later = journey(vec![get("/{v}"), {
        let mut step = Step::new("later", "GET", "/");
        step.take = vec![Take::parse("v = json /v").unwrap()];
        step
    }]);
    let error = Composer::new(&later, &http(), 1).unwrap_err();
    assert!(error.message.contains("comes later"), "{error}");
    assert!(Composer::new(&Mix::default(), &http(), 1).is_err());
    let twice = journey(vec![get("/"), get("/")]);
    assert!(Composer::new(&twice, &http(), 1).is_err());
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut mix = Mix::of(get("/"));
        mix.journeys[0].weight = weight;
        assert!(Composer::new(&mix, &http(), 1).is_err(), "{weight}");
    }
    let silent = Composer::new(&Mix::of(Step::new("t", "", "")), &target("tcp://h:7"), 1);
    assert!(
        silent
            .unwrap_err()
            .message
            .contains("nothing would be sent")
    );
    let mut step = Step::new("t", "", "");
    step.body = Body::Bytes(vec![1]);
    step.assertions = vec![Assertion::Status(vec![(200, 200)])];
    let status = Composer::new(&Mix::of(step), &target("tcp://h:7"), 1);
    assert!(status.unwrap_err().message.contains("neither status"));
}

#[test]
fn texts_of_assertions_and_values_are_read() {
    for text in [
        "status 200",
        "status 200..299, 304",
        "header Content-Type contains text/html; charset",
        "body contains  two spaces",
        "body matches ^\\{\"a\": .*\\}$",
        "size 100..2000",
        "size 5",
    ] {
        let read = Assertion::parse(text).unwrap();
        assert_eq!(Assertion::parse(&read.describe()).unwrap(), read, "{text}");
    }
    assert_eq!(
        Assertion::parse("size 1KiB..2KiB").unwrap(),
        Assertion::Size(1024, 2048)
    );
    assert_eq!(
        Assertion::parse("status 5xx").unwrap(),
        Assertion::Status(vec![(500, 599)])
    );
    for text in [
        "token = json /a/b",
        "id = header X-Id",
        "csrf = regex name=\"csrf\" value=\"([^\"]*)\"",
    ] {
        assert_eq!(Take::parse(text).unwrap().describe(), text);
    }
    let delimiter = AnswerEnd::parse("delimiter \\r\\n\\x00.").unwrap();
    assert_eq!(delimiter, AnswerEnd::Delimiter(b"\r\n\0.".to_vec()));
    assert_eq!(
        AnswerEnd::parse("bytes 512").unwrap(),
        AnswerEnd::Bytes(512)
    );
    assert_eq!(AnswerEnd::parse("echo").unwrap(), AnswerEnd::Echo);
    assert_eq!(AnswerEnd::parse("close").unwrap(), AnswerEnd::Close);
}

#[test]
fn wrong_texts_of_assertions_and_values_say_where() {
    let assertions = [
        ("statu 200", "statu", Some("status")),
        ("status abc", "abc", None),
        ("status 300..200", "300..200", None),
        ("size 5..x", "x", None),
        ("size 9..5", "9..5", None),
        ("header A has b", "has b", None),
        ("body contain x", "contain", Some("contains")),
        ("body contains", "body contains", None),
        ("", "", None),
    ];
    for (text, place, suggestion) in assertions {
        let error = Assertion::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], place, "{text}: {error}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{text}: {error}");
    }
    for (text, place) in [
        ("token", "token"),
        ("a = jsn /x", "jsn"),
        ("a = header", "header"),
    ] {
        let error = Take::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], place, "{text}: {error}");
    }
    for (text, place) in [
        ("delimiter \\q", "\\"),
        ("bytes x", "x"),
        ("ech", "ech"),
        ("delimiter", "delimiter"),
    ] {
        let error = AnswerEnd::parse(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], place, "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_path_is_compiled_or_refused_in_place(path in "[/?#%{}a-z0-9 é.\n-]{0,40}") {
        match Composer::new(&Mix::of(get(&path)), &http(), 1) {
            Err(error) => prop_assert!(path.get(error.at.clone()).is_some(), "{:?}", error),
            Ok(composer) => {
                let text = written(&composer, &composer.begin(7));
                let line = text.lines().next().unwrap();
                prop_assert_eq!(line.split(' ').count(), 3, "{}", line);
            }
        }
    }

    #[test]
    fn whatever_an_answer_holds_a_request_has_one_head(
        value in "\\PC{0,20}|[\r\n\t ]{0,5}|[a-z/:?#%\r\n ]{0,20}", fields in "[A-Za-z:;= \r\n]{0,60}",
    ) {
        let mut first = Step::new("first", "GET", "/");
        first.take = vec![Take::parse("v = json /v").unwrap()];
        let mut second = Step::new("second", "GET", "/{v}?q={v}");
        second.headers = vec![("X-V".into(), "{v}".into())];
        let composer = compose(&journey(vec![first, second]));
        let mut visit = composer.begin(0);
        let body = serde_json::json!({ "v": value }).to_string();
        let fields = format!("Set-Cookie: a={value}\r\n{fields}\r\n");
        composer.finish(&mut visit, &answer(200, &fields, &body));
        let mut out = Vec::new();
        if composer.write(&visit, &mut out).is_ok() {
            let text = String::from_utf8(out).unwrap();
            let lines: Vec<&str> = text.split("\r\n").collect();
            let known = ["GET /", "Host: ", "X-V: ", "User-Agent: ", "Cookie: "];
            let (end, head) = lines.split_last().unwrap();
            prop_assert_eq!(*end, "");
            let head = &head[..head.len() - 1];
            prop_assert!(head.iter().all(|line| known.iter().any(|k| line.starts_with(k))), "{:?}", lines);
            prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
        }
    }
}
