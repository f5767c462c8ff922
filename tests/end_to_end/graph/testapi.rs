//! testapi's own use: three processes, its variables, its sequence of requests.

use super::*;

/// A service as testapi's scripts start one; where it and its metrics are.
fn service(
    lab: &Lab,
    name: &str,
    downstream: Option<&str>,
    files: &[(&str, &Path)],
) -> (Graph, String, String) {
    let graph = Graph::start_with(
        lab,
        name,
        &["service", "--admin", "127.0.0.1:0"],
        |command| {
            command
                .env("UPSTREAM_URI", "127.0.0.1:0")
                .env("SERVICE_NAME", name)
                .env("PRIME_MAX", "250000")
                .env("REPORTER_URI", "http://127.0.0.1:9/api/v2/spans");
            if let Some(address) = downstream {
                command.env("DOWNSTREAM_URI", format!("http://{address}"));
            }
            for (variable, file) in files {
                command.env(variable, file);
            }
        },
    );
    let data = graph.said(&format!("{name}.ready"));
    let field = |name: &str| data[name].as_str().expect("an address").to_owned();
    let (address, admin) = (field("address"), field("admin"));
    (graph, address, admin)
}

#[test]
fn its_chain_answers_as_its_scripts_expect() {
    let lab = Lab::new();
    let (leaf, address, _) = service(&lab, "bleaf", None, &[]);
    let (branch, address, _) = service(&lab, "bbranch", Some(&address), &[]);
    let (root, address, metrics) = service(&lab, "broot", Some(&address), &[]);
    for path in ["/", "/busywork", "/prime", "/fork", "/load", "/load-status"] {
        let answer = ask(&address, path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        if path != "/load-status" {
            let expected = ECHO.replace(":/", &format!(":{path}"));
            assert_eq!(answer.body, expected);
        }
    }
    let page = ask(&metrics, "/metrics").body;
    for name in [
        "broot_opencensus_io_http_server_latency_count",
        "broot_opencensus_io_http_client_latency_bucket",
        "broot_prime_latency_count{method=\"primeHandler\"} 1",
        "broot_prime_latency_count{method=\"busyHandler\"} 1",
        "headroom_graph_server_request_seconds_count",
    ] {
        assert!(page.contains(name), "no {name} in {page}");
    }

    // What testapi answers with 200.
    assert_eq!(leaf.stop(), Some(0));
    assert_eq!(ask(&address, "/").status, 502);
    assert_eq!((branch.stop(), root.stop()), (Some(0), Some(0)));
}

#[test]
fn a_variable_that_cannot_be_used_is_told() {
    let lab = Lab::new();
    let output = lab
        .command()
        .args(["graph", "service"])
        .env_remove("UPSTREAM_URI")
        .output()
        .expect("the binary");
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("UPSTREAM_URI"), "{said}");
}
