//! Reports of older agents over syslog, by datagrams and by streams.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;

use compliance::server::{self, Config, Running};
use http::Method;
use serde_json::json;

use crate::peers::{A, B, Node, config, logger, metric, until, url};
use crate::rest::{Admin, folder};

async fn start(folder: &Path, syslog: bool) -> Running {
    let config = Config {
        syslog: syslog.then(|| ([127, 0, 0, 1], 0).into()),
        ..config(folder)
    };
    server::start(config, logger()).await.unwrap()
}

/// The messages of a run: its start, one report, its end.
fn messages(node: &Node, second: i64, config_id: &str, kind: &str) -> Vec<String> {
    let report = format!("A file@@{kind}@@r@@d@@i1@@Text@@/tmp/x");
    let log = node.log(second, config_id, &[&report]);
    let lines = log.lines().map(|line| line.split_once(' ').unwrap().1);
    let host = "<182>Aug 24 15:55:01 node-1 rudder[99]: ";
    lines.map(|line| format!("{host}{line}")).collect()
}

fn by_datagrams(to: SocketAddr, messages: &[String]) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for message in messages {
        socket.send_to(message.as_bytes(), to).unwrap();
    }
}

fn by_stream(to: SocketAddr, text: &str) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
}

fn status(word: &str) -> String {
    format!("compliance_syslog_messages_total{{status=\"{word}\"}} ")
}

async fn runs(admin: &Admin) -> u64 {
    admin.get("system/store").await["runs"].as_u64().unwrap()
}

/// The status of what the directive asks for, on the node.
async fn shown(admin: &Admin) -> String {
    let found = admin.get(&format!("nodes/{A}/compliance")).await;
    let directive = &found["nodes"][0]["rules"][0]["directives"][0];
    let value = &directive["components"][0]["values"][0];
    value["reports"][0]["status"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_set_so_is_heard_over_syslog_and_no_other() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), true).await;
    let to = server.syslog_address().unwrap();
    let admin = Admin::of(data.path(), &url(&server)).await;
    let (a, b) = (Node::new(A, &url(&server)), Node::new(B, &url(&server)));
    assert_eq!((a.enrol().await, b.enrol().await), (201, 201));
    let first = a.policy().await.0;
    admin.apply(&folder()).await;
    let id = a.policy_after(&first).await;
    let now = jiff::Timestamp::now().as_second();

    by_datagrams(to, &messages(&a, now - 9, &id, "result_error"));
    let refused = async || metric(&a, &status("refused")).await == "3";
    until(refused, "reports of a node that is not set so").await;
    let syslog = json!({"properties": [{"name": "reportProtocol", "value": "SYSLOG"}]});
    let path = format!("nodes/{A}");
    admin.data(Method::POST, &path, Some(syslog)).await;

    by_datagrams(to, &messages(&a, now - 8, &id, "result_repaired"));
    until(async || runs(&admin).await == 1, "a run of datagrams").await;
    until(
        async || shown(&admin).await == "successRepaired",
        "the repair",
    )
    .await;

    let counted = messages(&a, now - 7, &id, "result_error").into_iter();
    let counted: String = counted.map(|one| format!("{} {one}", one.len())).collect();
    by_stream(to, &counted);
    until(
        async || runs(&admin).await == 2,
        "a run of counted messages",
    )
    .await;
    until(async || shown(&admin).await == "error", "the error").await;

    // The last line feed is left out, and nonsense stands between.
    let lines = messages(&a, now - 6, &id, "result_success").join("\nnonsense\n");
    by_stream(to, &lines);
    until(async || runs(&admin).await == 3, "a run of lines").await;
    until(
        async || shown(&admin).await == "successAlreadyOK",
        "the success",
    )
    .await;

    // One stream that cannot be cut into messages, and one node's word about another.
    by_stream(to, "9999999 <182>");
    by_datagrams(to, &messages(&b, now - 5, &id, "result_error"));
    let closed = "compliance_syslog_streams_closed_total ";
    until(
        async || metric(&a, closed).await == "1",
        "the stream to be closed",
    )
    .await;
    until(
        async || metric(&a, &status("refused")).await == "6",
        "the other node",
    )
    .await;
    assert_eq!(metric(&a, &status("ok")).await, "9");
    assert_eq!(metric(&a, &status("invalid")).await, "2");
    assert_eq!(
        metric(&a, "compliance_syslog_kernel_drops_total ").await,
        "0"
    );
    // The same run with a signature is known.
    let again = a
        .run(
            now - 6,
            &id,
            &["A file@@result_success@@r@@d@@i1@@Text@@/tmp/x"],
        )
        .await;
    assert_eq!(again, 200);
    // What is not over yet is kept when the server stops.
    by_stream(
        to,
        &(messages(&a, now - 4, &id, "result_error")[..2].join("\n") + "\n"),
    );
    until(
        async || metric(&a, &status("ok")).await == "11",
        "an unfinished run",
    )
    .await;
    server.stop().await.unwrap();

    // It is off unless somebody asks for it; what was kept is read as what was signed.
    let server = start(data.path(), false).await;
    assert_eq!(server.syslog_address(), None);
    let admin = Admin::of(data.path(), &url(&server)).await;
    assert_eq!(runs(&admin).await, 4);
    assert_eq!(shown(&admin).await, "error");
    server.stop().await.unwrap();
}
