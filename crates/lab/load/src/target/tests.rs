//! URLs that people write, right and wrong.

use proptest::prelude::*;

use super::*;

fn read(url: &str) -> (Target, String) {
    Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn urls_are_taken_apart() {
    let cases = [
        (
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080",
            "127.0.0.1",
            8080,
            "/",
        ),
        (
            "http://example.com",
            "http://example.com",
            "example.com",
            80,
            "/",
        ),
        (
            "HTTP://Example.com:80/A?b=c#d",
            "http://example.com",
            "example.com",
            80,
            "/A?b=c",
        ),
        (
            "https://example.com?q=1",
            "https://example.com",
            "example.com",
            443,
            "/?q=1",
        ),
        (
            "https://example.com:8443/",
            "https://example.com:8443",
            "example.com",
            8443,
            "/",
        ),
        ("http://[::1]:9/x", "http://[::1]:9", "::1", 9, "/x"),
        ("h2c://[::1]", "h2c://[::1]", "::1", 80, "/"),
        ("h2://a/b", "h2://a", "a", 443, "/b"),
        (
            "localhost:8080/a",
            "http://localhost:8080",
            "localhost",
            8080,
            "/a",
        ),
        ("localhost", "http://localhost", "localhost", 80, "/"),
        ("http:80/", "http://http", "http", 80, "/"),
        (
            "my_service/a?u=http://x",
            "http://my_service",
            "my_service",
            80,
            "/a?u=http://x",
        ),
        ("ws://a:1/chat", "ws://a:1", "a", 1, "/chat"),
        ("wss://a/chat", "wss://a", "a", 443, "/chat"),
        (
            "grpc://a:50051/p.S/M",
            "grpc://a:50051",
            "a",
            50051,
            "/p.S/M",
        ),
        ("grpcs://a/p.S/M", "grpcs://a", "a", 443, "/p.S/M"),
        ("tcp://a:7", "tcp://a:7", "a", 7, ""),
        ("tls://a:7", "tls://a:7", "a", 7, ""),
        ("udp://a:7/", "udp://a:7", "a", 7, ""),
        (
            "http://bücher.example/",
            "http://xn--bcher-kva.example",
            "xn--bcher-kva.example",
            80,
            "/",
        ),
        (
            "http://a/{uniform 0 9}/{line t.c}?x={seq}",
            "http://a",
            "a",
            80,
            "/{uniform 0 9}/{line t.c}?x={seq}",
        ),
    ];
    for (url, shown, host, port, path) in cases {
        let (target, found) = read(url);
        assert_eq!(target.to_string(), shown, "{url}");
        assert_eq!((target.host.as_str(), target.port), (host, port), "{url}");
        assert_eq!(found, path, "{url}");
    }
    assert!(read("https://a").0.tls && !read("http://a").0.tls);
    assert_eq!(read("wss://a").0.protocol, Protocol::WebSocket);
}

#[test]
fn wrong_urls_say_what_is_wrong_and_where() {
    let cases = [
        ("", "expected a URL", "", None),
        ("  ", "expected a URL", "  ", None),
        (" http://a", "spaces around", " http://a", Some("http://a")),
        ("htp://a/", "unknown scheme", "htp", Some("http")),
        ("ftp://a/", "unknown scheme", "ftp", None),
        ("gopher://a/", "unknown scheme", "gopher", None),
        ("http:/a/", "two slashes", "http:/", Some("http://")),
        ("https:a", "two slashes", "https:", Some("https://")),
        ("http://", "no host", "", None),
        ("http:///x", "no host", "/x", None),
        ("/x", "no host", "/x", None),
        ("http://:80/", "no host", ":80", None),
        (
            "http://me:secret@a/",
            "user name or password",
            "me:secret@",
            None,
        ),
        ("http://a b/", "no spaces", " ", None),
        ("http://a:http/", "a port is", "http", None),
        ("http://a:0/", "a port is", "0", None),
        ("http://a:65536/", "a port is", "65536", None),
        ("http://a:/", "a port is", "", None),
        ("http://::1/", "brackets", "::1", Some("[::1]")),
        ("http://[::1/", "not closed", "[::1", None),
        ("http://[::1]80/", "expected :", "80", None),
        ("http://[fe80::1%eth0]/", "zones", "[fe80::1%eth0]", None),
        ("http://{seq}/", "path and query", "{seq}", None),
        ("http://999.1.1.1/", "is no host", "999.1.1.1", None),
        ("tcp://a", "no usual port", "a", None),
        ("tcp://a:7/x", "no path", "/x", None),
        ("redis://me:secret@a", "REDISCLI_AUTH", ":secret", None),
        ("redis://:secret@a", "REDISCLI_AUTH", ":secret", None),
        ("redis://a b@a", "without spaces", " b", None),
        ("redis://a/x", "is a number", "x", None),
        ("redis://a/70000", "is a number", "70000", None),
        ("redis://a?x", "is a number", "?x", None),
        ("postgres://a/x", "name of a user", "a", None),
        ("postgres://me:secret@a/x", "PGPASSWORD", ":secret", None),
        (
            "postgres://me@a/x?sslmode=require",
            "no TLS",
            "?sslmode=require",
            None,
        ),
        ("postgres://me@a/x y", "stand apart", " y", None),
        ("tcp://me@a:7", "user name or password", "me@", None),
        // A space of two bytes.
        ("http://a\u{a0}b/", "no spaces", "\u{a0}", None),
    ];
    for (url, part, place, suggestion) in cases {
        let error = Target::parse(url).expect_err(url);
        assert!(error.message.contains(part), "{url}: {error}");
        assert!(!error.to_string().contains("secret"), "{url}: {error}");
        assert_eq!(&url[error.at.clone()], place, "{url}: {error}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{url}: {error}");
    }
}

#[test]
fn databases_have_a_user_and_a_name() {
    let login = |url: &str| {
        let (target, path) = Target::parse(url).unwrap();
        assert_eq!((target.host.as_str(), path.as_str()), ("a", ""), "{url}");
        (target.port, target.login.user, target.login.database)
    };
    let texts = |port, user: &str, database: &str| (port, user.to_owned(), database.to_owned());
    assert_eq!(login("redis://a"), texts(6379, "", ""));
    assert_eq!(login("rediss://a/"), texts(6379, "", ""));
    assert_eq!(login("redis://me@a:7/12"), texts(7, "me", "12"));
    assert_eq!(login("postgres://me@a"), texts(5432, "me", ""));
    assert_eq!(login("postgresql://me@a:7/shop"), texts(7, "me", "shop"));
}

#[test]
fn a_place_is_a_host_and_a_port_and_nothing_else() {
    let place = |text: &str| Target::place(text, 8080);
    assert_eq!(place("a"), Ok(("a".to_owned(), 8080)));
    assert_eq!(place("[::1]:80"), Ok(("::1".to_owned(), 80)));
    for (text, rest) in [
        ("a:80#x", "#x"),
        ("a:80#", "#"),
        ("a:80/", "/"),
        ("a/", "/"),
        ("a:80/#?", "/#?"),
        ("a:80?b", "?b"),
        ("http://a:80", "//a:80"),
    ] {
        let error = place(text).expect_err(text);
        assert_eq!(&text[error.at.clone()], rest, "{error}");
        let found = format!("nothing behind it; found \"{rest}\"");
        assert!(error.message.ends_with(&found), "{error}");
    }
    for text in [
        "", "a:", "a:0", "a:80:90", "me@a", "a b", "::1", "[::1", "a%b",
    ] {
        let error = place(text).expect_err(text);
        assert_eq!(error.at, 0..text.len(), "{text}: {error}");
    }
}

#[test]
fn variables_may_stand_in_the_path() {
    let (target, path) = Target::parse("http://a:1/b?c={uniform 0 9}").unwrap();
    assert_eq!((target.port, path.as_str()), (1, "/b?c={uniform 0 9}"));
    let (_, path) = Target::parse("http://a/{uniform 0 9}").unwrap();
    assert_eq!(path, "/{uniform 0 9}");
    let error = Target::parse("htp://a/").unwrap_err();
    assert_eq!(&"htp://a/"[error.at], "htp");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_place(url in "(http|tcp|h)?:?/{0,2}[a-z0-9:@\\[\\]{}%.é ]{0,20}[/?#]?.{0,9}") {
        match Target::parse(&url) {
            Err(error) => prop_assert!(url.get(error.at.clone()).is_some(), "{:?}", error),
            Ok((target, path)) => {
                // What is shown reads back as the same.
                let shown = format!("{target}{path}");
                prop_assert_eq!(Target::parse(shown.trim()).unwrap().0, target);
            }
        }
    }
}
