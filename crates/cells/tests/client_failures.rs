//! What people are told when something is wrong between them and a BBS, its cells or its Locket.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::Duration;

use cells::client::{BbsAccess, Caller, Failure, Identity, Kind, LocketAccess, Trust};
use serde_json::json;

use crate::client_asks::{Lines, World};
use crate::mutual_tls::certificates;

fn plain(address: impl std::fmt::Display, within: Option<Duration>) -> Caller {
    let access = BbsAccess {
        url: format!("http://{address}"),
        identity: None,
        within,
    };
    access.caller().unwrap()
}

fn other(failure: &Failure) -> String {
    assert_eq!(failure.exit_code(), 5, "{failure}");
    failure.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused_and_anybody_is_trusted_only_when_told() {
    let world = World::start().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let strange = certificates(elsewhere.path());

    // They do not know us.
    let identity = Identity {
        certificate: strange.certificate.clone(),
        key: strange.key.clone(),
        ..world.identity()
    };
    other(&world.caller_as(identity).domains().await.unwrap_err());
    // We do not know them.
    let strange_trust = Trust::Authority(strange.authority.clone());
    let identity = Identity {
        trust: strange_trust,
        ..world.identity()
    };
    let failure = world.caller_as(identity).domains().await.unwrap_err();
    assert!(other(&failure).contains("certificate"), "{failure}");
    // We do not ask.
    let identity = Identity {
        trust: Trust::Anybody,
        ..world.identity()
    };
    let caller = world.caller_as(identity);
    caller.domains().await.unwrap();
    caller.cell_states(&mut |_| Ok(())).await.unwrap();
    // No certificates at all, where they are asked for.
    other(
        &plain(world.bbs.address(), None)
            .domains()
            .await
            .unwrap_err(),
    );

    // Files that are not there, or hold something else.
    let at = |identity: Identity| {
        let url = "https://127.0.0.1:1".to_owned();
        let access = BbsAccess {
            url,
            identity: Some(identity),
            within: None,
        };
        access.caller().err().unwrap()
    };
    let missing = world.folder.path().join("missing.pem");
    for (identity, expected) in [
        (
            Identity {
                certificate: missing.clone(),
                ..world.identity()
            },
            "cert file '",
        ),
        (
            Identity {
                key: missing.clone(),
                ..world.identity()
            },
            "key file '",
        ),
        (
            Identity {
                trust: Trust::Authority(missing.clone()),
                ..world.identity()
            },
            "CA cert file '",
        ),
    ] {
        let failure = at(identity);
        assert_eq!(failure.exit_code(), 3);
        let text = failure.to_string();
        assert!(
            text.starts_with(expected)
                && text.contains("missing.pem' doesn't exist or is not readable: "),
            "{text}"
        );
    }
    let swapped = Identity {
        key: world.own.certificate.clone(),
        ..world.identity()
    };
    assert!(other(&at(swapped)).contains("a private key"));
    let not_ours = Identity {
        key: strange.key,
        ..world.identity()
    };
    assert!(other(&at(not_ours)).contains("set up TLS"));
}

/// A server that answers every connection with the same bytes, and then closes it or, without
/// any, keeps it.
fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            if answer.is_empty() {
                kept.push(stream);
            } else {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_bbs_is_told_apart() {
    let none = answering(
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno\r\n",
    );
    let failure = plain(none, None).domains().await.unwrap_err();
    let text =
        "BBS error\nType 5: InvalidResponse\nMessage: Invalid Response with status code: 404";
    assert_eq!(
        (failure.to_string().as_str(), failure.exit_code()),
        (text, 4)
    );
    assert!(
        failure
            .advice()
            .unwrap()
            .contains("Is this the address of a BBS?")
    );
    let failure = plain(none, None)
        .task_events(&mut |_| Ok(()))
        .await
        .unwrap_err();
    assert!(
        failure.to_string().contains("Type 0: UnknownError"),
        "{failure}"
    );

    let rubbish = answering(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 2\r\nConnection: close\r\n\r\n\x0a\x7f",
    );
    let failure = plain(rubbish, None).cells().await.unwrap_err();
    assert_eq!(failure.exit_code(), 4, "{failure}");

    let silent = answering("");
    let short = Some(Duration::from_millis(50));
    let failure = plain(silent, short).domains().await.unwrap_err();
    assert!(
        failure
            .to_string()
            .starts_with("BBS error\nType 31: Timeout\n"),
        "{failure}"
    );
    let failure = plain(silent, short)
        .task_events(&mut |_| Ok(()))
        .await
        .unwrap_err();
    assert!(
        failure.to_string().contains("no answer within"),
        "{failure}"
    );
    assert_eq!(failure.exit_code(), 4);

    let nobody = crate::own_address::own_address();
    let failure = plain(nobody, None).domains().await.unwrap_err();
    assert!(other(&failure).contains("does it run there"), "{failure}");
    let failure = plain(nobody, None)
        .cell_states(&mut |_| Ok(()))
        .await
        .unwrap_err();
    let told = "BBS error: Failed to get cell registrations from BBS: ";
    assert!(failure.to_string().starts_with(told), "{failure}");
    assert_eq!(failure.exit_code(), 4);

    for url in [
        "",
        "127.0.0.1:1",
        "ftp://127.0.0.1",
        "http://",
        "https://127.0.0.1:1",
        "http://a:b",
    ] {
        let access = BbsAccess {
            url: url.into(),
            identity: None,
            within: None,
        };
        assert_eq!(
            access.caller().err().map(|failure| failure.exit_code()),
            Some(3),
            "{url:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_says_so_and_one_that_ends_does_not() {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    // The event is an empty TaskCreatedEvent with a task of no name.
    const EVENT: &str = "26\r\nid: 0\nevent: task_created\ndata: CgA=\n\n\r\n";
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let lines = Lines::default();
    let mut add = |line: &str| lines.add(line);
    let ends = plain(answering(leaked(format!("{HEAD}{EVENT}0\r\n\r\n"))), None);
    ends.task_events(&mut add).await.unwrap();
    let breaks = plain(answering(leaked(format!("{HEAD}{EVENT}26\r\nid: 1"))), None);
    let failure = breaks.task_events(&mut add).await.unwrap_err();
    assert!(
        other(&failure).contains("the stream of events broke: "),
        "{failure}"
    );
    assert_eq!(lines.types(), ["task_created", "task_created"]);

    let unknown = "28\r\nid: 0\nevent: task_forgotten\ndata: CgA=\n\n\r\n0\r\n\r\n";
    let unknown = plain(answering(leaked(format!("{HEAD}{unknown}"))), None);
    let failure = unknown.task_events(&mut add).await.unwrap_err();
    assert!(
        other(&failure).contains("\"task_forgotten\" is of no kind"),
        "{failure}"
    );
    // Nobody takes the lines any more.
    let ends = plain(answering(leaked(format!("{HEAD}{EVENT}"))), None);
    let mut closed = |_: &str| Err(std::io::ErrorKind::BrokenPipe.into());
    other(&ends.task_events(&mut closed).await.unwrap_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_does_not_answer_holds_no_other_up() {
    let world = World::start().await;
    let access = LocketAccess {
        location: world.bbs.locket().unwrap().to_string(),
        identity: Some(world.identity()),
    };
    let locket = access.caller().unwrap();
    // The one is not there, the other says nothing of use.
    let nobody = format!("http://{}", crate::own_address::own_address());
    let wrong = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]");
    for (cell_id, url) in [("a-gone", nobody), ("z-wrong", format!("http://{wrong}"))] {
        let value = json!({"cell_id": cell_id, "rep_address": url, "zone": "z"}).to_string();
        locket
            .claim(Kind::Presence, cell_id, "o", &value, 60)
            .await
            .unwrap();
    }
    let caller = world.caller();
    let lines = Mutex::new(Vec::new());
    let mut add = |line: &str| {
        lines.lock().unwrap().push(line.to_owned());
        Ok(())
    };
    let failure = caller.cell_states(&mut add).await.unwrap_err();
    assert_eq!((lines.lock().unwrap().len(), failure.exit_code()), (1, 4));
    let text = failure.to_string();
    assert!(
        text.contains(
            "Rep error: Failed to get cell state for cell a-gone: GET /state: connect to "
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "Rep error: Failed to get cell state for cell z-wrong: its answer is no state: "
        ),
        "{text}"
    );
    let failure = caller.cell_state("z-wrong").await.unwrap_err();
    assert_eq!(failure.exit_code(), 4);
}
