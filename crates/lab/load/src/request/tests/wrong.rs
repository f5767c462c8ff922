//! What is refused, and what can never be sent.

use proptest::prelude::*;

use super::*;

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
        ("items?x=1", "begins with /", "items", Some("/items")),
        ("{{é b", "begins with /", "{{é", Some("/{{é")),
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
        (
            with(&|step| step.answer = AnswerEnd::Bytes(0)),
            "never comes",
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
    let nameless = Composer::new(&Mix::of(Step::new("g", "", "/")), &target("grpc://h:7"), 1);
    assert!(
        nameless
            .unwrap_err()
            .message
            .contains("/package.Service/Method")
    );
    let mut step = Step::new("t", "", "");
    step.body = Body::Bytes(vec![1]);
    step.assertions = vec![Assertion::Status(vec![(200, 200)])];
    let status = Composer::new(&Mix::of(step), &target("tcp://h:7"), 1);
    assert!(status.unwrap_err().message.contains("neither status"));
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
