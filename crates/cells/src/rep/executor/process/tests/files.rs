use diego::models::{CachedDependency, UploadAction};

use super::*;

#[tokio::test]
async fn what_was_downloaded_is_run_and_sent() {
    let bench = Bench::new();
    let served = tempfile::tempdir().unwrap();
    let archive = served.path().join("app.tgz");
    let made = std::process::Command::new("sh")
        .current_dir(served.path())
        .args(["-c", "printf '#!/bin/sh\\nprintf ran > result\\n' > run && chmod +x run && tar -czf app.tgz run"])
        .status();
    assert!(made.unwrap().success());
    let bytes = std::fs::read(&archive).unwrap();
    let (url, sent, _stop) = serve(bytes).await;
    let download = |to: &str| DownloadAction {
        from: format!("{url}/app.tgz"),
        to: to.into(),
        artifact: "app".into(),
        ..DownloadAction::default()
    };
    let mut run = sh("");
    run.run_action.as_mut().unwrap().path = "/opt/app/run".into();
    let upload = Action::from(UploadAction {
        from: "result".into(),
        to: format!("{url}/result"),
        artifact: "result".into(),
        ..UploadAction::default()
    });
    let steps = vec![Action::from(download("/opt/app")), run, upload];
    assert_eq!(bench.reason(serial(steps)).await, None);
    assert_eq!(*sent.lock().unwrap(), ["ran"]);
    for said in [
        "Downloading app...",
        "Downloaded app (",
        "Uploaded result (3B)",
    ] {
        assert!(bench.sink.kept().contains(said), "{said}");
    }
    let bad = DownloadAction {
        checksum_algorithm: "sha1".into(),
        checksum_value: "0123456789abcdef0123456789abcdef01234567".into(),
        ..download("/opt/app")
    };
    let reason = bench.reason(bad.into()).await.unwrap();
    assert_eq!(reason, "Downloading app failed");
    let reason = bench.reason(download("../out").into()).await.unwrap();
    assert!(
        reason.starts_with("Copying app into the container failed: "),
        "{reason}"
    );
    let mut small = task(download("/opt/app").into());
    if let Definition::Task(task) = &mut small.definition {
        task.disk_mb = 1;
    }
    assert!(!bench.run(small).await.completion.failed);
    let missing = UploadAction {
        from: "no".into(),
        to: url.clone(),
        ..UploadAction::default()
    };
    let reason = bench.reason(missing.into()).await.unwrap();
    assert_eq!(reason, "Failed to establish stream from container");

    // What a container depends on is there before it runs, and it does not come without.
    let depends = |path: &str| CachedDependency {
        name: "deps".into(),
        from: format!("{url}/{path}"),
        to: "/deps".into(),
        cache_key: "k".into(),
        ..CachedDependency::default()
    };
    let mut run = sh("");
    run.run_action.as_mut().unwrap().path = "/deps/run".into();
    let mut job = task(run);
    if let Definition::Task(task) = &mut job.definition {
        task.cached_dependencies = vec![depends("app.tgz")];
    }
    assert!(!bench.run(job.clone()).await.completion.failed);
    for said in ["Downloading deps...", "Downloaded deps ("] {
        assert!(bench.sink.kept().contains(said), "{said}");
    }
    if let Definition::Task(task) = &mut job.definition {
        task.cached_dependencies = vec![CachedDependency {
            checksum_algorithm: "sha512".into(),
            ..depends("app.tgz")
        }];
    }
    let created = bench.executor.create(Arc::new(job)).await;
    assert_eq!(created, Err("failed to download cached artifacts".into()));
    assert!(bench.sink.kept().contains("Downloading deps failed"));
}

/// Serves one file, whatever is asked for, and keeps what it is sent.
pub(super) async fn serve(
    file: Vec<u8>,
) -> (
    String,
    Arc<std::sync::Mutex<Vec<String>>>,
    watch::Sender<bool>,
) {
    struct Server(Vec<u8>, Arc<std::sync::Mutex<Vec<String>>>);
    impl net::Handler for Server {
        async fn handle(&self, request: http::Request<net::Incoming>) -> http::Response<net::Body> {
            if request.method() == http::Method::GET {
                return http::Response::new(net::full(self.0.clone()));
            }
            let within = Duration::from_secs(60);
            let body = net::read_body(request.into_body(), 1 << 20, within).await;
            let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
            self.1.lock().unwrap().push(text);
            http::Response::new(net::empty())
        }
    }
    let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::default();
    let (stop, shutdown) = net::shutdown();
    let handler = Arc::new(Server(file, Arc::clone(&sent)));
    tokio::spawn(net::serve(
        listener,
        None,
        net::Limits::default(),
        handler,
        shutdown,
    ));
    (url, sent, stop)
}
