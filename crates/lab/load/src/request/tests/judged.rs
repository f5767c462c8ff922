//! Journeys, and what is made of answers.

use std::time::Duration;

use super::*;

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
        rows: 0,
        ..fine
    };
    assert_eq!(
        judge(&["body contains hello"], &cut).as_deref(),
        Some("body above 1 MiB, not searched")
    );
    assert_eq!(judge(&["size 2MB"], &cut), None);
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
