use proptest::prelude::*;

use super::*;

/// As route-emitter sends it.
pub(crate) const TYPICAL: &str = r#"{"host":"10.0.16.21","port":61012,"tls_port":61014,"uris":["app-7.example.com"],"app":"6c2f84c0-4b1e-4b0e-9d0b-0d4c6f0a3a11","private_instance_id":"0c1b8b1e-6a1c-4f7a-7c5e-2f6d","private_instance_index":"0","server_cert_domain_san":"0c1b8b1e-6a1c-4f7a-7c5e-2f6d","tags":{"app_id":"6c2f84c0","component":"route-emitter","source_id":"6c2f84c0"},"availability_zone":"z1","endpoint_updated_at_ns":1763742000000000000,"options":{}}"#;

#[test]
fn a_typical_one_is_borrowed_whole() {
    let message = Message::parse(TYPICAL.as_bytes()).unwrap();
    let mut identity = String::from("before");
    message.identity(&mut identity);
    assert_eq!(identity, "10.0.16.21:61014");
    assert_eq!(message.uris().collect::<Vec<_>>(), ["app-7.example.com"]);
    assert_eq!(message.component(), "route-emitter");
    assert!(matches!(message.app.0, std::borrow::Cow::Borrowed(_)));
    let registration = message.registration(&identity, true, None);
    assert!(registration.tls);
    assert_eq!(registration.zone, "z1");
    assert_eq!(registration.stale_after, Duration::ZERO);
    assert_eq!(registration.algorithm, None);
    assert_eq!(registration.tags.unwrap().len(), 3);
}

#[test]
fn nothing_is_required_and_null_is_nothing() {
    for payload in [
        "{}",
        r#"{"host":null,"port":null,"tls_port":null,"uris":null,"tags":null,"options":null,"app":null,"stale_threshold_in_seconds":null,"protocol":null}"#,
        r#"{"unknown":{"deep":[1,2,{"x":null}]}}"#,
    ] {
        let message = Message::parse(payload.as_bytes()).unwrap();
        assert_eq!(message, Message::default(), "{payload}");
        assert_eq!(message.uris().count(), 0);
    }
}

#[test]
fn what_is_no_registration_is_refused() {
    for payload in [
        "",
        "not json",
        "[]",
        "{",
        "{}x",
        r#"{"port":65536}"#,
        r#"{"port":-1}"#,
        r#"{"port":"80"}"#,
        r#"{"uris":"a"}"#,
        r#"{"uris":[1]}"#,
        r#"{"tags":{"a":1}}"#,
        r#"{"host":5}"#,
        r#"{"options":{"hash_balance":-1}}"#,
        r#"{"options":{"hash_balance":"x"}}"#,
        "{\"host\":\"\u{0}\"}",
    ] {
        assert!(Message::parse(payload.as_bytes()).is_err(), "{payload}");
    }
    assert!(Message::parse(b"{\"host\":\"\xff\"}").is_err());
}

#[test]
fn a_route_service_must_be_encrypted() {
    for (url, good) in [
        ("", true),
        ("https://a", true),
        ("http://a", false),
        ("ftp", false),
    ] {
        let payload = format!(r#"{{"route_service_url":"{url}"}}"#);
        assert_eq!(Message::parse(payload.as_bytes()).is_ok(), good, "{url}");
    }
}

#[test]
fn the_port_for_tls_wins_unless_it_is_none() {
    for (ports, identity, tls) in [
        (r#""port":80"#, "h:80", false),
        (r#""port":80,"tls_port":0"#, "h:80", false),
        (r#""port":80,"tls_port":443"#, "h:443", true),
    ] {
        let payload = format!(r#"{{"host":"h",{ports}}}"#);
        let message = Message::parse(payload.as_bytes()).unwrap();
        let mut text = String::new();
        message.identity(&mut text);
        assert_eq!((text.as_str(), message.is_tls()), (identity, tls));
    }
}

#[test]
fn options_and_protocols_are_known_by_name() {
    for (options, algorithm, header, balance) in [
        (
            r#"{"loadbalancing":"round-robin"}"#,
            Some(Algorithm::RoundRobin),
            "",
            0.0,
        ),
        (
            r#"{"loadbalancing":"least-connection"}"#,
            Some(Algorithm::LeastConnection),
            "",
            0.0,
        ),
        (r#"{"loadbalancing":"best"}"#, None, "", 0.0),
        (r#"{"loadbalancing":"hash"}"#, None, "", 0.0),
        (
            r#"{"loadbalancing":"hash","hash_header":"X-A","hash_balance":"1.5"}"#,
            Some(Algorithm::Hash),
            "X-A",
            1.5,
        ),
        (
            r#"{"loadbalancing":"hash","hash_header":"X-A","hash_balance":2}"#,
            Some(Algorithm::Hash),
            "X-A",
            2.0,
        ),
    ] {
        let payload = format!(r#"{{"options":{options},"protocol":"http2"}}"#);
        let message = Message::parse(payload.as_bytes()).unwrap();
        let registration = message.registration("h:1", true, None);
        assert_eq!(registration.algorithm, algorithm, "{options}");
        assert_eq!(registration.hash_header, header);
        assert_eq!(registration.hash_balance, balance);
        assert_eq!(registration.protocol, BackendProtocol::Http2);
        assert_eq!(
            message.registration("h:1", false, None).protocol,
            BackendProtocol::Http1
        );
    }
}

#[test]
fn policies_are_a_text_or_a_list() {
    let read = |options: &str| {
        let payload = format!(r#"{{"options":{options}}}"#);
        let message = Message::parse(payload.as_bytes()).unwrap().into_owned();
        let registration = message.registration("h:1", true, None);
        let texts = (registration.policy_scope, registration.policies);
        (texts.0.to_owned(), texts.1.to_owned())
    };
    let told = |scope: &str, policies: &str| (scope.to_owned(), policies.to_owned());
    assert_eq!(
        read(r#"{"route_policy_scope":"org","route_policies":"cf:app:a,cf:org:b"}"#),
        told("org", "cf:app:a,cf:org:b")
    );
    assert_eq!(
        read(r#"{"route_policy_scope":"any","route_policies":["cf:app:a","cf:org:b"]}"#),
        told("any", "cf:app:a,cf:org:b")
    );
    for nothing in [
        "{}",
        "null",
        r#"{"route_policies":null}"#,
        r#"{"route_policies":[]}"#,
    ] {
        assert_eq!(read(nothing), told("", ""), "{nothing}");
    }
    // A list's element must not become two.
    let two = br#"{"options":{"route_policies":["cf:app:a,cf:any"]}}"#;
    assert!(Message::parse(two).is_err());
}

#[test]
fn tags_are_in_order_and_unescaped() {
    let payload = r#"{"tags":{"b":"1","a":"\u00e9","b":"2"}}"#;
    let message = Message::parse(payload.as_bytes()).unwrap();
    let expected = [("a".into(), "é".into()), ("b".into(), "2".into())];
    assert_eq!(message.tags.0.as_deref(), Some(&expected[..]));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::parse(&bytes);
    }

    #[test]
    fn a_damaged_message_is_read_or_refused(at in 0..TYPICAL.len(), byte: u8) {
        let mut bytes = TYPICAL.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok(message) = Message::parse(&bytes) {
            let mut identity = String::new();
            message.identity(&mut identity);
            let _ = message.registration(&identity, true, None);
        }
    }
}

#[test]
fn an_endpoint_does_not_say_more_than_is_kept() {
    let message =
        |bytes: usize| format!(r#"{{"host":"h","tags":{{"t":"{}"}}}}"#, "x".repeat(bytes));
    assert!(Message::parse(message(MOST_TEXT - 2).as_bytes()).is_ok());
    let error = Message::parse(message(MOST_TEXT).as_bytes()).unwrap_err();
    assert!(matches!(error, MessageError::TooLarge(16386)), "{error}");
}

#[test]
fn deep_and_wrong_values_are_refused_and_cost_no_stack() {
    for opening in ["[", "{\"x\":"] {
        let deep = format!("{{\"x\":{}", opening.repeat(200_000));
        assert!(Message::parse(deep.as_bytes()).is_err());
    }
    for wrong in [
        r#"{"host":1}"#,
        r#"{"port":"1"}"#,
        r#"{"port":65536}"#,
        r#"{"port":-1}"#,
        r#"{"uris":"a"}"#,
        r#"{"uris":[1]}"#,
        r#"{"tags":[]}"#,
        r#"{"tags":{"a":1}}"#,
        r#"{"options":1}"#,
        r#"{"options":{"hash_balance":"NaN"}}"#,
        r#"{"stale_threshold_in_seconds":1e99}"#,
        "null",
        "1",
        "",
        "\u{feff}{}",
    ] {
        assert!(Message::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
}
