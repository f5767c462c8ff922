//! Requests as they are written.

use super::*;

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
fn threads_share_a_composer() {
    fn shared<T: Send + Sync>() {}
    shared::<Composer>();
}
