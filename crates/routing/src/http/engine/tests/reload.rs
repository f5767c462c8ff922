//! Settings change, and connections go on.

use std::io::Write as _;
use std::net::SocketAddr;

use super::bench::{Backend, Bench, ok, read_message};
use super::tls::{Authority, TlsClient, connect};
use crate::http::settings::HttpSettings;

/// The value of `X-Frame-Options` of an answer; an error: there was none.
fn get(client: &mut TlsClient) -> Result<Option<String>, String> {
    let request = b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n";
    let sent = client.get_mut().write_all(request);
    sent.map_err(|error| error.to_string())?;
    let seen = read_message(client, false)?;
    assert_eq!(seen.status, 200);
    Ok(seen.field("x-frame-options").map(str::to_owned))
}

#[test]
fn certificates_and_rules_change_and_connections_stay() {
    let (old, new) = (Authority::new(), Authority::new());
    let backend = Backend::answering(|_| ok(b"x"));
    let mut settings = HttpSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        listen_tls: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        threads: Some(2),
        ..HttpSettings::default()
    };
    settings.client_tls.certificates = vec![old.sign("app.test")];
    let started = settings.clone();
    let bench = Bench::with(&[backend.address], |it| *it = started);
    let mut first = connect(&bench, &old);
    assert_eq!(get(&mut first), Ok(None));

    settings.client_tls.certificates = vec![new.sign("app.test")];
    settings.headers.add = vec![("X-Frame-Options".to_owned(), "DENY".to_owned())];
    assert_eq!(bench.engine.reload(&settings).unwrap(), [""; 0]);
    // Each thread takes them with its next turn, at the latest with the next connection.
    let denied = || Ok(Some("DENY".to_owned()));
    while get(&mut connect(&bench, &new)) != denied() {}
    assert!(get(&mut connect(&bench, &old)).is_err());
    // The connection from before goes on, under the new rules.
    while get(&mut first) != denied() {}
    bench.until("the others are gone", |totals| totals.open_clients == 1);
}

#[test]
fn what_cannot_change_stays_and_is_named() {
    let authority = Authority::new();
    let backend = Backend::answering(|_| ok(b"x"));
    let mut settings = HttpSettings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        threads: Some(1),
        ..HttpSettings::default()
    };
    let started = settings.clone();
    let bench = Bench::with(&[backend.address], |it| *it = started);
    let mut client = bench.client();
    assert_eq!(client.get("/").status, 200);
    settings.listen = None;
    settings.threads = Some(7);
    settings.client_connections = 1;
    settings.access_log.stdout = true;
    let kept = bench.engine.reload(&settings).unwrap();
    assert_eq!(
        kept,
        ["listen", "threads", "client_connections", "access_log"]
    );
    assert_eq!(client.get("/").status, 200);
    // Of what is of no use nothing is taken.
    settings.backends.authorities = "no certificate".to_owned();
    settings.headers.remove = vec!["Content-Length".to_owned()];
    assert!(bench.engine.reload(&settings).is_err());
    settings.backends.authorities = authority.pem();
    assert!(client.get("/").field("content-length").is_some());
}
