//! Heads at gorouter's limits, which are far: long paths, many fields, long lists.

use super::bench::{Asked, Backend, Bench, ok};
use crate::http::settings::HttpSettings;

/// Says how many fields of the client came.
fn measuring() -> Backend {
    Backend::answering(|asked: &Asked| {
        let own = asked
            .message
            .fields
            .iter()
            .filter(|(name, _)| name.starts_with("X-Own"));
        ok(own.count().to_string().as_bytes())
    })
}

/// Lengths of paths that are asked for.
const LENGTHS: [usize; 4] = [8 * 1024, 8 * 1024 + 1, 64 * 1024, 512 * 1024];

/// Answers with the length of the path, however long that is.
fn measuring_paths() -> Backend {
    Backend::new(|mut connection, _| {
        for _ in LENGTHS {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.extend(connection.read_exact(1));
            }
            let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            connection.send(&ok(path.len().to_string().as_bytes()));
        }
    })
}

#[test]
fn long_paths_are_routed() {
    let backend = measuring_paths();
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for length in LENGTHS {
        let seen = client.get(&format!("/{}", "p".repeat(length - 1)));
        assert_eq!(
            (seen.status, seen.body),
            (200, length.to_string().into_bytes())
        );
    }
}

#[test]
fn paths_beyond_ascii_are_text() {
    let backend = Backend::answering(|asked| ok(asked.path().as_bytes()));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    assert_eq!(client.get("/\u{e9}").body, "/\u{e9}".as_bytes());
    client.send(b"GET /\xff\xfe HTTP/1.1\r\nHost: app.test\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 400);
}

#[test]
fn many_fields_pass_both_ways_up_to_the_settings() {
    let echo = Backend::answering(|asked: &Asked| {
        let fields: String = asked
            .message
            .fields
            .iter()
            .filter(|(name, _)| name.starts_with("X-Own"))
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n").into_bytes()
    });
    let bench = Bench::with(&[echo.address], |settings: &mut HttpSettings| {
        settings.request_fields = 4001;
    });
    let asked = |fields: usize| {
        let fields: String = (0..fields)
            .map(|number| format!("x-own-{number}: {number}\r\n"))
            .collect();
        format!("GET / HTTP/1.1\r\nHost: app.test\r\n{fields}\r\n")
    };
    let mut client = bench.client();
    for fields in [0, 255, 256, 257, 4000] {
        client.send(asked(fields).as_bytes());
        let seen = client.answer().unwrap();
        let own = seen
            .fields
            .iter()
            .filter(|(name, _)| name.starts_with("X-Own"));
        assert_eq!((seen.status, own.count()), (200, fields));
    }
    // One more than the setting lets through.
    client.send(asked(4001).as_bytes());
    let refused = client.answer().unwrap();
    assert_eq!(refused.status, 431);
    let error = refused.field("x-cf-routererror");
    assert_eq!(error, Some("max-request-size-exceeded"));
}

#[test]
fn a_head_that_is_too_large_is_logged_with_the_endpoint_whose_turn_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let backends = [measuring(), measuring()];
    let addresses = [backends[0].address, backends[1].address];
    let bench = Bench::with(&addresses, |settings| {
        settings.request_head_bytes = 10;
        settings.access_log.file = Some(path.clone());
    });
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(bench.client().get("/").status);
    }
    assert_eq!(statuses, [431; 4]);
    bench.engine.stop();
    let log = std::fs::read_to_string(&path).unwrap();
    for address in addresses {
        assert_eq!(log.matches(&format!("\"{address}\"")).count(), 2, "{log}");
    }
}

/// A list of as many options as fit, beside as many fields as are allowed: each field is
/// looked up in the list, and not the list gone through for each.
#[test]
fn long_lists_of_options_are_honoured() {
    let backend = measuring();
    let bench = Bench::new(&[backend.address]);
    let fields: String = (0..5000)
        .map(|number| format!("X-Own-{number}: 1\r\n"))
        .collect();
    let options: String = (0..60_000)
        .map(|number| format!("x-OWN-{number},"))
        .collect();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: app.test\r\n{fields}X-Own-No: 1\r\nConnection: {options}\r\n\r\n"
    );
    let mut client = bench.client();
    client.send(head.as_bytes());
    let seen = client.answer().unwrap();
    assert_eq!(seen.body, b"1");
}

#[test]
fn a_list_of_lengths_is_no_length_of_an_answer() {
    for (lengths, status) in [
        ("Content-Length: 2, 2\r\n", 502),
        ("Content-Length: 2,\r\n", 502),
        ("Content-Length: 2\r\nContent-Length: 2\r\n", 200),
    ] {
        let backend =
            Backend::answering(move |_| format!("HTTP/1.1 200 OK\r\n{lengths}\r\nok").into_bytes());
        let bench = Bench::new(&[backend.address]);
        let seen = bench.client().get("/");
        assert_eq!(seen.status, status, "{lengths:?}");
        if status == 502 {
            let error = seen.field("x-cf-routererror").unwrap();
            assert!(error.contains("bad Content-Length"), "{error}");
        }
    }
}
