//! Refusals, retries, and the parts that they are made of.

use proptest::prelude::*;

use super::super::retry::{Attempt, Failure, Fate, NO_SUCH_HOST, Verdict, judge, note_no_endpoint};
use super::super::target::Target;
use super::super::text::{http_date, log_time};
use super::*;
use crate::http::settings::ForwardedClientCert;
use wire::tls::TlsFailure;

fn attempt() -> Attempt<'static> {
    Attempt {
        number: 1,
        endpoints: 3,
        address: "10.0.0.1:8080",
        local: Some("10.0.0.9:40000".parse().unwrap()),
        reused: false,
        head_sent: true,
        replayable: true,
        tls: false,
    }
}

fn exchange(idempotent: bool) -> Exchange {
    Exchange {
        idempotent,
        ..Exchange::default()
    }
}

#[test]
fn what_was_not_sent_is_tried_again() {
    let failures = [
        Failure::Dial("connection refused"),
        Failure::DialTimeout,
        Failure::Tls(&TlsFailure::NotTls),
        Failure::TlsTimeout,
    ];
    for failure in failures {
        let (verdict, fate) = judge(failure, &attempt(), 3, &mut exchange(false));
        assert!(matches!(verdict, Verdict::Again(_)), "{failure:?}");
        assert_eq!(fate, Fate::MarkFailed);
        let tls = Attempt {
            tls: true,
            ..attempt()
        };
        assert_eq!(
            judge(failure, &tls, 3, &mut exchange(false)).1,
            Fate::Remove
        );
    }
    let unsent = Attempt {
        head_sent: false,
        ..attempt()
    };
    for failure in [Failure::Closed, Failure::Timeout] {
        let (verdict, fate) = judge(failure, &unsent, 3, &mut exchange(false));
        assert!(matches!(verdict, Verdict::Again(_)), "{failure:?}");
        assert_eq!(fate, Fate::Stays);
    }
}

#[test]
fn what_was_sent_is_tried_again_if_that_does_no_harm() {
    let again = |failure, idempotent| {
        let verdict = judge(failure, &attempt(), 3, &mut exchange(idempotent)).0;
        matches!(verdict, Verdict::Again(_))
    };
    assert!(again(Failure::Closed, true));
    assert!(!again(Failure::Closed, false));
    assert!(!again(Failure::Reset, true));
    assert!(!again(Failure::Timeout, true));
    assert!(!again(Failure::Protocol("malformed"), true));
    assert!(!again(Failure::ClientGone, true));
}

#[test]
fn a_stale_connection_is_not_an_attempt() {
    let stale = Attempt {
        reused: true,
        ..attempt()
    };
    for failure in [
        Failure::Closed,
        Failure::Reset,
        Failure::Write("broken pipe"),
    ] {
        let (verdict, fate) = judge(failure, &stale, 1, &mut exchange(true));
        assert_eq!((verdict, fate), (Verdict::Resend, Fate::Stays));
        let (verdict, _) = judge(failure, &stale, 1, &mut exchange(false));
        assert!(matches!(verdict, Verdict::GiveUp(_)));
        let unsent = Attempt {
            head_sent: false,
            ..stale
        };
        assert_eq!(
            judge(failure, &unsent, 1, &mut exchange(false)).0,
            Verdict::Resend
        );
    }
}

#[test]
fn attempts_end_with_the_settings_or_the_endpoints() {
    let refused = Failure::Dial("connection refused");
    let again = |number, endpoints, most| {
        let attempt = Attempt {
            number,
            endpoints,
            ..attempt()
        };
        let verdict = judge(refused, &attempt, most, &mut exchange(true)).0;
        matches!(verdict, Verdict::Again(Refusal::EndpointFailure))
    };
    assert!(again(1, 2, 3));
    assert!(!again(2, 2, 3));
    assert!(!again(3, 9, 3));
    assert!(again(8, 9, 0));
    assert!(!again(9, 9, 0));
    let error = |failure| {
        let mut exchange = exchange(true);
        judge(failure, &attempt(), 3, &mut exchange);
        exchange.router_error
    };
    assert_eq!(
        error(Failure::Write("broken pipe")),
        "endpoint_failure (write tcp 10.0.0.9:40000->10.0.0.1:8080: write: broken pipe)"
    );
    assert_eq!(
        error(Failure::DialTimeout),
        "endpoint_failure (dial tcp 10.0.0.1:8080: i/o timeout)"
    );
    assert_eq!(
        error(Failure::Dial(NO_SUCH_HOST)),
        "endpoint_failure (dial tcp: lookup 10.0.0.1: no such host)"
    );
}

#[test]
fn a_request_that_nobody_may_serve_is_logged_as_it_would_have_been_sent() {
    let mut fixture = Fixture::new(|_| {});
    fixture.admit("GET / HTTP/1.1\nHost: a.ex.com\n\n");
    note_no_endpoint(&mut fixture.exchange);
    let expected = r#" x_forwarded_for:"203.0.113.9" x_forwarded_proto:"http" "#;
    let line = fixture.logged();
    assert!(line.contains(expected), "{line}");
}

#[test]
fn what_is_wrong_with_a_certificate_is_told_in_gos_words() {
    let other_name = |proven: &[&str], expected: &str| TlsFailure::OtherName {
        proven: proven.iter().map(|name| (*name).to_owned()).collect(),
        expected: expected.to_owned(),
    };
    for (failure, status, expected) in [
        (
            other_name(&["b", "c"], "a"),
            503,
            "certificate is valid for b, c, not a",
        ),
        (
            other_name(&[], "a"),
            503,
            "certificate is not valid for any names, but wanted to match a",
        ),
        (
            other_name(&[], "10.0.0.1"),
            503,
            "cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs",
        ),
        (
            TlsFailure::CommonNameOnly,
            503,
            "certificate relies on legacy Common Name field, use SANs instead",
        ),
        (
            TlsFailure::UnknownAuthority,
            526,
            "certificate signed by unknown authority",
        ),
        (
            TlsFailure::WrongUsage,
            526,
            "certificate specifies an incompatible key usage",
        ),
        (
            TlsFailure::CriticalExtension,
            526,
            "unhandled critical extension",
        ),
        (
            TlsFailure::TooManyIntermediates,
            526,
            "too many intermediates for path length constraint",
        ),
        (TlsFailure::BadCertificate, 526, "certificate is of no use"),
    ] {
        let tls = Attempt {
            tls: true,
            ..attempt()
        };
        let mut exchange = exchange(true);
        let (verdict, fate) = judge(Failure::Tls(&failure), &tls, 1, &mut exchange);
        let Verdict::GiveUp(refusal) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!((refusal.status(), fate), (status, Fate::Remove));
        assert_eq!(
            exchange.router_error,
            format!("endpoint_failure (tls: failed to verify certificate: x509: {expected})")
        );
    }
}

#[test]
fn an_address_of_ipv6_is_told_in_brackets() {
    for (address, expected) in [
        ("::1:8080", "[::1]:8080"),
        ("[::1]:8080", "[::1]:8080"),
        ("10.0.0.1:8080", "10.0.0.1:8080"),
        ("name:8080", "name:8080"),
    ] {
        let attempt = Attempt {
            address,
            ..attempt()
        };
        let mut exchange = exchange(true);
        judge(Failure::DialTimeout, &attempt, 1, &mut exchange);
        let expected = format!("endpoint_failure (dial tcp {expected}: i/o timeout)");
        assert_eq!(exchange.router_error, expected);
    }
}

#[test]
fn a_target_that_go_refuses_is_refused_as_go_does() {
    for target in [
        "/%zz",
        "/%a",
        "host",
        "://host/",
        "1http://host/",
        "http://host:x/",
        "http://ho%zzst/",
    ] {
        assert_eq!(Target::of(b"GET", target.as_bytes()), None, "{target}");
    }
    let mut fixture = Fixture::new(|_| {});
    fixture.admit("GET / HTTP/1.1\nHost: a.ex.com\n\n");
    let mut out = Vec::new();
    let (pipeline, head) = (&fixture.pipeline, &fixture.head);
    let kept = pipeline.write_refusal(
        head,
        &mut fixture.exchange,
        Refusal::Malformed,
        true,
        NOW,
        &mut out,
    );
    assert!(!kept);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Connection: close\r\n\r\n400 Bad Request"
    );
}

#[test]
fn targets_are_taken_apart() {
    let parts = |method: &str, target: &'static str| {
        let taken = Target::of(method.as_bytes(), target.as_bytes()).unwrap();
        let part = |range: &std::ops::Range<u32>| &target[range.start as usize..range.end as usize];
        (
            part(&taken.host),
            part(&taken.path),
            part(&taken.query),
            taken.has_query,
        )
    };
    assert_eq!(parts("GET", "/a?b?c"), ("", "/a", "b?c", true));
    assert_eq!(parts("GET", "/a?"), ("", "/a", "", true));
    assert_eq!(parts("GET", "//a/b"), ("", "//a/b", "", false));
    assert_eq!(parts("GET", "http://h:1/a?b"), ("h:1", "/a", "b", true));
    assert_eq!(parts("GET", "http://u@h?b"), ("h", "", "b", true));
    assert_eq!(parts("CONNECT", "h:443"), ("h:443", "", "", false));
    assert_eq!(parts("OPTIONS", "*"), ("", "*", "", false));
}

#[test]
fn an_instance_of_a_process() {
    let mut fixture = Fixture::new(|_| {});
    let guid = "11111111-2222-3333-4444-555555555555";
    let mut refused = |named: &str| {
        let answer = fixture.refused(&format!(
            "GET / HTTP/1.1\nHost: a.ex.com\nX-CF-Process-Instance: {named}\n\n"
        ));
        answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
    };
    assert_eq!(
        refused(guid),
        format!(
            "400 Bad Request: Requested instance with process guid ('{guid}') does not exist for route ('a.ex.com')\n"
        )
    );
    assert_eq!(
        refused(&format!("{guid}:7")),
        format!(
            "400 Bad Request: Requested instance ('7') with process guid ('{guid}') does not exist for route ('a.ex.com')\n"
        )
    );
}

#[test]
fn error_pages_come_from_the_template_and_are_escaped() {
    let page = "<h1>{{ .Status }} {{.StatusText}}</h1>{{ .Message }} \
                {{ .Header.Get \"X-Cf-RouterError\" }}{{ .Header.Get \"X\" }}!";
    let mut fixture = Fixture::new(|settings| settings.error_template = Some(page.to_owned()));
    let answer = fixture.refused("GET / HTTP/1.1\nHost: no'pe\n\n");
    let expected = "\r\n\r\n<h1>404 Not Found</h1>Requested route (&#39;no&#39;pe&#39;) does not exist. unknown_route!";
    assert!(answer.ends_with(expected), "{answer}");
    assert!(answer.contains("\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_eq!(value(&answer, "X-Content-Type-Options"), Some("nosniff"));
    let error = ErrorTemplate::parse("a\n{{ range }}").unwrap_err();
    assert!(
        error.to_string().contains("{{ range }} in line 2"),
        "{error}"
    );
    assert!(ErrorTemplate::parse("{{ .Status").is_err());
}

/// The fields by which a route service proves that it was asked.
fn proof(sent: &str) -> String {
    [
        "X-Cf-Proxy-Signature",
        "X-Cf-Proxy-Metadata",
        "X-Cf-Forwarded-Url",
    ]
    .iter()
    .map(|name| format!("{name}: {}\n", value(sent, name).unwrap()))
    .collect()
}

#[test]
fn a_route_service_is_asked_first_and_believed_when_it_proves_itself() {
    let mut fixture = Fixture::new(|settings| {
        settings.route_services.secret = "shared".into();
    });
    let pool = PoolSettings {
        route_service_url: "https://rs.ex.com:8443/svc?q=1".into(),
        ..PoolSettings::default()
    };
    fixture.route("bound.ex.com", &pool);
    let sent = fixture.sent("GET /p?x=a%20b HTTP/1.1\nHost: bound.ex.com:80\n\n");
    let service = fixture.exchange.route_service().unwrap();
    assert_eq!((&*service.host, service.port), ("rs.ex.com", 8443));
    assert!(
        sent.starts_with("GET /svc?q=1 HTTP/1.1\r\nHost: rs.ex.com:8443\r\n"),
        "{sent}"
    );
    let forwarded = "https://bound.ex.com/p?x=a%20b";
    assert_eq!(value(&sent, "X-Cf-Forwarded-Url"), Some(forwarded));
    assert!(!sent.contains("X-Cf-Instanceid"));

    let signature = value(&sent, "X-Cf-Proxy-Signature").unwrap().to_owned();
    let metadata = value(&sent, "X-Cf-Proxy-Metadata").unwrap().to_owned();
    let proof = format!(
        "X-CF-Proxy-Signature: {signature}\nX-CF-Proxy-Metadata: {metadata}\n\
         X-CF-Forwarded-Url: {forwarded}\nX-Forwarded-Proto: ftp\n"
    );
    let back = fixture.sent(&format!(
        "GET /other HTTP/1.1\nHost: bound.ex.com\n{proof}\n"
    ));
    assert!(fixture.exchange.route_service().is_none());
    assert!(back.starts_with("GET /other HTTP/1.1\r\nHost: bound.ex.com\r\n"));
    assert!(
        !back.contains("X-Cf-Proxy") && !back.contains("Forwarded-Url"),
        "{back}"
    );
    assert!(back.contains("X-Cf-Instanceid: instance-guid"));

    fixture.route("other.ex.com", &pool);
    let answer = fixture.refused(&format!("GET / HTTP/1.1\nHost: other.ex.com\n{proof}\n"));
    let expected = "502 Bad Gateway: Failed to validate Route Service Signature: route service \
                    forwarded URL other.ex.com/ does not match the original request URL bound.ex.com/p\n";
    assert!(answer.ends_with(expected), "{answer}");
}

/// What the service sends back is the request that it was asked about, whatever signs it has.
#[test]
fn what_a_route_service_is_asked_comes_back_as_it_was() {
    let mut fixture = Fixture::new(|settings| {
        settings.route_services.secret = "shared".into();
    });
    let bound = PoolSettings {
        route_service_url: "https://rs.ex.com/".into(),
        ..PoolSettings::default()
    };
    fixture.route("bound.ex.com", &bound);
    fixture.route("bound.ex.com/a", &PoolSettings::default());
    for target in [
        "/100%25",
        "/50%25-off",
        "/?q=50%",
        "/a%2Fb",
        "/%3Fx",
        "/p?x=a+b",
    ] {
        let request = format!("GET {target} HTTP/1.1\nHost: bound.ex.com\n");
        let sent = fixture.sent(&format!("{request}\n"));
        assert!(fixture.exchange.route_service().is_some(), "{target}");
        let proof = proof(&sent);
        let back = fixture.sent(&format!("{request}{proof}\n"));
        assert!(fixture.exchange.route_service().is_none(), "{target}");
        assert!(
            back.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
            "{back}"
        );
    }
}

/// Only over TLS could the router have said it on the first way.
#[test]
fn a_certificate_that_comes_back_is_believed_over_tls_alone() {
    for (tls, told) in [(false, false), (true, true)] {
        let mut fixture = Fixture::new(|settings| {
            settings.route_services.secret = "shared".into();
            settings.headers.client_cert = ForwardedClientCert::SanitizeSet;
        });
        let bound = PoolSettings {
            route_service_url: "https://rs.ex.com/".into(),
            ..PoolSettings::default()
        };
        fixture.route("bound.ex.com", &bound);
        let request = "GET / HTTP/1.1\nHost: bound.ex.com\n";
        let sent = fixture.sent(&format!("{request}\n"));
        let proof = proof(&sent);
        if tls {
            let facts = Some(TlsFacts::default());
            fixture.client = Client::new("203.0.113.9:4711".parse().unwrap(), facts);
        }
        let claim = "X-Forwarded-Client-Cert: mine\n";
        let back = fixture.sent(&format!("{request}{proof}{claim}\n"));
        assert_eq!(
            value(&back, "X-Forwarded-Client-Cert").is_some(),
            told,
            "{back}"
        );
    }
}

/// What the first way let through reaches the service, and not the application behind it.
#[test]
fn a_certificate_reaches_a_service_that_is_a_route_of_this_router() {
    let mut fixture = Fixture::new(|settings| {
        settings.route_services.secret = "shared".into();
        settings.headers.client_cert = ForwardedClientCert::Forward;
    });
    let bound = PoolSettings {
        route_service_url: "https://rs.ex.com/".into(),
        ..PoolSettings::default()
    };
    fixture.route("bound.ex.com", &bound);
    fixture.route("rs.ex.com", &PoolSettings::default());
    let sent = fixture.sent("GET / HTTP/1.1\nHost: bound.ex.com\n\n");
    let proof = proof(&sent);
    let facts = Some(TlsFacts::default());
    fixture.client = Client::new("203.0.113.9:4711".parse().unwrap(), facts);
    for (host, expected) in [("rs.ex.com", Some("told")), ("bound.ex.com", None)] {
        let claim = "X-Forwarded-Client-Cert: told\n";
        let sent = fixture.sent(&format!("GET / HTTP/1.1\nHost: {host}\n{proof}{claim}\n"));
        assert_eq!(value(&sent, "X-Forwarded-Client-Cert"), expected, "{host}");
    }
    // Without a proof the connection's certificate decides.
    let sent = fixture.sent("GET / HTTP/1.1\nHost: rs.ex.com\nX-Forwarded-Client-Cert: told\n\n");
    assert_eq!(value(&sent, "X-Forwarded-Client-Cert"), None);
}

/// gorouter looks at a signature before anything else of route services.
#[test]
fn a_signature_that_is_not_valid_is_told_before_an_upgrade_is_refused() {
    let mut fixture = Fixture::new(|settings| {
        settings.route_services.secret = "shared".into();
    });
    let bound = PoolSettings {
        route_service_url: "https://rs.ex.com/".into(),
        ..PoolSettings::default()
    };
    fixture.route("bound.ex.com", &bound);
    fixture.route("other.ex.com", &bound);
    let sent = fixture.sent("GET / HTTP/1.1\nHost: bound.ex.com\n\n");
    let proof = proof(&sent);
    let upgrade = "Connection: Upgrade\nUpgrade: websocket\n";
    let mut ask =
        |host: &str| fixture.refused(&format!("GET / HTTP/1.1\nHost: {host}\n{upgrade}{proof}\n"));
    let expected = "502 Bad Gateway: Failed to validate Route Service Signature: route service \
                    forwarded URL other.ex.com/ does not match the original request URL bound.ex.com\n";
    let answer = ask("other.ex.com");
    assert!(answer.ends_with(expected), "{answer}");
    let answer = ask("bound.ex.com");
    assert_eq!(
        value(&answer, "X-Cf-Routererror"),
        Some("route_service_unsupported")
    );
}

#[test]
fn a_service_is_the_routers_own_if_it_is_a_route_and_allowed() {
    for (hairpin, hosts, url, expected) in [
        (false, &[][..], "https://rs.ex.com", false),
        (true, &[], "https://rs.ex.com", true),
        (true, &[], "https://RS.ex.com:8443/svc?q=1", true),
        (true, &[], "https://other.ex.com", false),
        // A route of a path is one of that path only.
        (true, &[], "https://path.ex.com/svc/deep", true),
        (true, &[], "https://path.ex.com/other", false),
        (true, &[], "https://any.wild.ex.com", true),
        (true, &["rs.ex.com"], "https://rs.ex.com/x", true),
        (true, &["*.ex.com"], "https://rs.ex.com/x", true),
        (true, &["no.ex.com"], "https://rs.ex.com/x", false),
        (true, &["path.ex.com"], "https://path.ex.com/svc", true),
        // The host of the route counts, not that of the URL.
        (true, &["any.wild.ex.com"], "https://any.wild.ex.com", false),
        (true, &["*.wild.ex.com"], "https://any.wild.ex.com", true),
    ] {
        let mut fixture = Fixture::new(|settings| {
            let services = &mut settings.route_services;
            services.secret = "shared".into();
            services.hairpin = hairpin;
            services.hairpin_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        });
        for known in ["rs.ex.com", "path.ex.com/svc", "*.wild.ex.com"] {
            fixture.route(known, &PoolSettings::default());
        }
        let pool = PoolSettings {
            route_service_url: url.into(),
            ..PoolSettings::default()
        };
        fixture.route("bound.ex.com", &pool);
        fixture.sent("GET / HTTP/1.1\nHost: bound.ex.com\n\n");
        let found = fixture.exchange.route_service().unwrap().hairpin;
        assert_eq!(found, expected, "{url} with {hosts:?}");
    }
}

#[test]
fn strict_rules_refuse_a_signature_where_none_belongs() {
    let mut fixture = Fixture::new(|settings| {
        settings.route_services.secret = "shared".into();
        settings.route_services.strict = true;
    });
    let answer = fixture.refused("GET / HTTP/1.1\nHost: a.ex.com\nX-CF-Proxy-Signature: x\n\n");
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"));
    assert_eq!(
        value(&answer, "X-Cf-Routererror"),
        Some("invalid_route_service_signature")
    );
}

#[test]
fn a_route_service_without_a_secret_is_refused() {
    let mut fixture = Fixture::new(|_| {});
    let pool = PoolSettings {
        route_service_url: "https://rs.ex.com".into(),
        ..PoolSettings::default()
    };
    fixture.route("bound.ex.com", &pool);
    let answer = fixture.refused("GET / HTTP/1.1\nHost: bound.ex.com\n\n");
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
    assert_eq!(
        value(&answer, "X-Cf-Routererror"),
        Some("route_service_unsupported")
    );
    // gorouter has set the protocol by then, and nothing else.
    let line = fixture.logged();
    let expected = r#" x_forwarded_for:"-" x_forwarded_proto:"http" "#;
    assert!(line.contains(expected), "{line}");
}

#[test]
fn a_router_error_cannot_end_its_line() {
    let mut fixture = Fixture::new(|_| {});
    fixture.sent("GET / HTTP/1.1\nHost: a.ex.com\n\n");
    let failure = Failure::Protocol("malformed \r\nX-Evil: 1");
    judge(failure, &attempt(), 1, &mut fixture.exchange);
    let mut out = Vec::new();
    let (pipeline, head) = (&fixture.pipeline, &fixture.head);
    let refusal = Refusal::EndpointFailure;
    pipeline.write_refusal(head, &mut fixture.exchange, refusal, true, NOW, &mut out);
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains("\nX-Evil"), "{out}");
}

proptest! {
    /// The calendar agrees with another one.
    #[test]
    fn dates_are_right(seconds in 0_i64..=18_000_000_000) {
        let wall = seconds as u64 * 1_000_000_000;
        let at = jiff::Timestamp::from_second(seconds).unwrap();
        let zoned = at.to_zoned(jiff::tz::TimeZone::UTC);
        let mut text = Vec::new();
        http_date(wall, &mut text);
        let expected = zoned.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        prop_assert_eq!(String::from_utf8(text).unwrap(), expected);
        let mut text = Vec::new();
        log_time(wall + 7, &mut text);
        let expected = zoned.strftime("%Y-%m-%dT%H:%M:%S.000000007Z").to_string();
        prop_assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
