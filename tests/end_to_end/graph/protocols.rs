//! Graphs of every protocol under `headroom load`, in one process and in many.

use super::*;

/// testapi's chain in a protocol, and where load finds it.
const PROTOCOLS: [(&str, &str); 3] = [
    ("http1", "http://{}/"),
    ("http2", "h2c://{}/"),
    ("grpc", "grpc://{}/headroom.graph.Service/Call"),
];

fn chain(lab: &Lab, protocol: &str) -> PathBuf {
    let with = format!("[defaults]\nprotocol = \"{protocol}\"");
    lab.write("graph.toml", &CHAIN.replace("[defaults]", &with))
}

/// What came of so many requests: answered, refused and errors.
fn load(lab: &Lab, url: &str, requests: u32) -> (u64, u64, u64) {
    let number = requests.to_string();
    let output = lab
        .command()
        .args(["load", url, "--json", "--quiet", "--rate", "200/s"])
        .args(["-n", &number])
        .output()
        .expect("the binary");
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let of = |name: &str| result["requests"][name].as_u64().expect("a number");
    (of("answered"), of("refused"), of("errors"))
}

fn carries_load(protocol: &str, url: &str, more: &[&str]) {
    let lab = Lab::new();
    let graph = Graph::up(&lab, &chain(&lab, protocol), more);
    let (address, admin) = graph.ready();
    let url = url.replace("{}", &address);
    assert_eq!(load(&lab, &url, 100), (100, 0, 0), "{protocol} {more:?}");
    let line = "headroom_graph_server_request_seconds_count{service=\"bleaf\",path=\"/\",status=\"2xx\"} 100";
    until("the leaf's counters", || {
        let page = ask(&admin, "/metrics").body;
        page.lines().any(|found| found == line)
    });
    until("whole traces", || {
        let traces = json(&admin, "/traces?recent=200");
        let traces = traces["traces"].as_array().expect("traces");
        traces.len() == 100 && traces.iter().all(|trace| trace["spans"] == 5)
    });
    if !more.is_empty() {
        // A failure is none in any protocol.
        let topology = json(&admin, "/topology");
        let instances = topology["instances"].as_array().expect("instances");
        let leaf = instances.iter().find(|one| one["service"] == "bleaf");
        let leaf = leaf.and_then(|one| one["pid"].as_i64()).expect("a process");
        let leaf = Pid::from_raw(i32::try_from(leaf).expect("a process id"));
        kill(leaf, Signal::SIGKILL).expect("a signal sent");
        graph.said("graph.service-ended");
        assert_eq!(load(&lab, &url, 20), (20, 20, 0), "{protocol} {more:?}");
        until("the failures at their edge", || {
            let page = ask(&admin, "/metrics").body;
            let failures = page.lines().filter(|line| {
                line.starts_with("headroom_graph_client_failures_total{service=\"bbranch\",edge=\"bbranch>bleaf\"")
            });
            let counts = failures.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
            counts.sum::<u64>() == 20
        });
    }
    assert_eq!(graph.stop(), Some(0));
}

#[test]
fn every_protocol_carries_load_in_one_process() {
    for (protocol, url) in PROTOCOLS {
        carries_load(protocol, url, &[]);
    }
}

#[test]
fn every_protocol_carries_load_in_many_processes() {
    for (protocol, url) in PROTOCOLS {
        carries_load(protocol, url, &["--processes"]);
    }
}
