//! Which route a request finds.

use super::*;

#[test]
fn lookups_find_the_longest_prefix_of_whole_segments() {
    let table = table();
    for uri in [
        "ok.ex.com",
        "OK.ex.com/Foo/?x=1",
        "ok.ex.com/foo/bar/baz",
        "b.ex.com/",
    ] {
        add(&table, uri, "1.1.1.1:1");
    }
    for (host, path, expected) in [
        ("ok.ex.com", "/", "ok.ex.com"),
        ("OK.Ex.com:8080", "/foo", "ok.ex.com/foo"),
        ("ok.ex.com", "/FOO/", "ok.ex.com/foo"),
        ("ok.ex.com", "/foo/bar", "ok.ex.com/foo"),
        ("ok.ex.com", "/foo/bar/baz?q=/x", "ok.ex.com/foo/bar/baz"),
        ("ok.ex.com", "/foo/bar/baz/x//y/", "ok.ex.com/foo/bar/baz"),
        ("ok.ex.com", "/foox", "ok.ex.com"),
        ("ok.ex.com", "/foo%2Fbar", "ok.ex.com"),
        ("ok.ex.com", "?/foo", "ok.ex.com"),
        ("ok.ex.com", "*", "-"),
        ("ok.ex.com", "", "ok.ex.com"),
        ("b.ex.com", "/any", "b.ex.com"),
        ("ex.com", "/", "-"),
        ("ok.ex.com.", "/", "-"),
        ("", "/ok.ex.com", "-"),
        (":80", "/", "-"),
        ("[::1]:80", "/", "-"),
        ("ok.ex.com/foo", "/", "-"),
    ] {
        assert_eq!(found(&table, host, path), expected, "{host} {path}");
    }
}

#[test]
fn wild_cards_match_several_labels_and_never_the_apex() {
    let table = table();
    add(&table, "*.wild.ex.com", "1.1.1.1:1");
    add(&table, "*.wild.ex.com/p", "1.1.1.1:1");
    add(&table, "own.wild.ex.com/q", "1.1.1.1:1");
    add(&table, "*", "1.1.1.1:1");
    for (host, path, expected) in [
        ("x.wild.ex.com", "/", "*.wild.ex.com"),
        ("x.y.wild.ex.com:80", "/p/q", "*.wild.ex.com/p"),
        ("wild.ex.com", "/", "-"),
        ("own.wild.ex.com", "/q", "own.wild.ex.com/q"),
        // A host whose own routes do not match the path falls back too.
        ("own.wild.ex.com", "/p", "*.wild.ex.com/p"),
        (".wild.ex.com", "/", "*.wild.ex.com"),
        ("..wild.ex.com", "/", "*.wild.ex.com"),
        ("*.wild.ex.com", "/", "*.wild.ex.com"),
        ("name", "/", "-"),
    ] {
        assert_eq!(found(&table, host, path), expected, "{host} {path}");
    }
}

#[test]
fn wild_cards_match_every_name_of_dns_and_nothing_longer() {
    let table = table();
    add(&table, "*.wild.ex.com", "1.1.1.1:1");
    let name = |labels: usize| format!("{}wild.ex.com", "a.".repeat(labels));
    assert_eq!(found(&table, &name(121), "/"), "*.wild.ex.com");
    assert_eq!(name(121).len(), 253);
    assert_eq!(found(&table, &name(122), "/"), "-");
    add(&table, &name(1000), "1.1.1.1:1");
    assert_eq!(found(&table, &name(1000), "/"), name(1000));
}

#[test]
fn bytes_beyond_ascii_are_compared_as_they_are() {
    let table = table();
    add(&table, "bücher.ex.com/Straße", "1.1.1.1:1");
    assert_eq!(
        found(&table, "Bücher.ex.com", "/straße"),
        "bücher.ex.com/straße"
    );
    assert_eq!(found(&table, "BÜCHER.ex.com", "/straße"), "-");
    assert!(matches!(
        table.lookup(b"\xff\xfe", b"/\xff"),
        Lookup::Nothing
    ));
}

#[test]
fn keys_of_any_length_are_found_up_to_the_longest() {
    let table = table();
    for length in [
        10,
        SHORT_KEY - 1,
        SHORT_KEY,
        SHORT_KEY + 1,
        RouteKey::MOST_BYTES,
    ] {
        let uri = format!("a.b/{}", "p".repeat(length - 4));
        add(&table, &uri, "1.1.1.1:1");
        assert_eq!(found(&table, "a.b", &uri[3..]), uri);
    }
    let longer = format!("/{}", "p".repeat(RouteKey::MOST_BYTES));
    assert_eq!(found(&table, "a.b", &longer), "-");
    // No key is so long, but one of its beginnings may be.
    add(&table, "long.ex/v1", "1.1.1.1:1");
    for rest in [
        "p".repeat(64 * 1024),
        "p/".repeat(32 * 1024),
        "/".repeat(64 * 1024),
    ] {
        assert_eq!(
            found(&table, "long.ex", &format!("/v1/{rest}")),
            "long.ex/v1"
        );
        assert_eq!(
            found(&table, "long.ex", &format!("/v1{rest}")) == "long.ex/v1",
            rest.starts_with('/')
        );
    }
    // The longest key counts still, and not what only begins like it.
    let longest = format!("a.b/{}", "p".repeat(RouteKey::MOST_BYTES - 4));
    assert_eq!(
        found(&table, "a.b", &format!("{}/and/more", &longest[3..])),
        longest
    );
    assert_eq!(found(&table, "a.b", &format!("{}q", &longest[3..])), "-");
    let host = "h".repeat(RouteKey::MOST_BYTES + 1);
    assert_eq!(found(&table, &host, "/"), "-");
}

#[test]
fn paths_of_any_depth_are_found() {
    let table = table();
    for depth in [1, 2, 62, 63, 64, 65, 200] {
        let path = "/x".repeat(depth);
        add(&table, &format!("deep.ex{path}"), "1.1.1.1:1");
        assert_eq!(found(&table, "deep.ex", &path), format!("deep.ex{path}"));
        assert_eq!(
            found(&table, "deep.ex", &format!("{path}/y")),
            format!("deep.ex{path}")
        );
    }
}

#[test]
fn an_empty_pool_falls_back_to_a_shorter_one_and_not_to_a_wild_card() {
    let table = Table::new(TableSettings {
        empty_pool_stays: Duration::from_secs(10),
        ..TableSettings::default()
    });
    for uri in ["a.ex.com", "a.ex.com/p", "*.ex.com"] {
        add(&table, uri, "1.1.1.1:1");
    }
    let leave = |uri| table.unregister(&key(uri), "1.1.1.1:1", &Modification::default(), SECOND);
    assert_eq!(leave("a.ex.com/p"), Unregistered::Removed { route: false });
    assert_eq!(found(&table, "a.ex.com", "/p"), "a.ex.com");
    assert_eq!(leave("a.ex.com"), Unregistered::Removed { route: false });
    assert_eq!(found(&table, "a.ex.com", "/p"), "(a.ex.com/p)");
    assert_eq!(found(&table, "a.ex.com", "/"), "(a.ex.com)");
    // Its time is not over yet.
    assert_eq!(table.prune(10 * SECOND), Pruned::default());
    let pruned = Pruned {
        routes: 2,
        endpoints: 0,
    };
    assert_eq!(table.prune(11 * SECOND), pruned);
    assert_eq!(found(&table, "a.ex.com", "/p"), "*.ex.com");
    assert_eq!(table.len(), 1);
}
