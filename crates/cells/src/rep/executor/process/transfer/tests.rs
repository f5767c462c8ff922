use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, Response, StatusCode};
use net::{Body, Handler, Incoming, Limits, full};
use tar::{Builder, EntryType, Header};
use tokio::sync::watch;

use super::*;

/// Answers with what it has, and keeps what it is sent.
#[derive(Default)]
struct Files {
    files: Mutex<HashMap<String, (Bytes, Option<&'static str>)>>,
    asked: Mutex<Vec<(String, StatusCode)>>,
    sent: Mutex<Vec<(http::HeaderMap, Bytes)>>,
    /// Answers with this before it answers as it should.
    refuses: Mutex<Vec<StatusCode>>,
}

impl Handler for Files {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let (head, body) = request.into_parts();
        let refused = self.refuses.lock().unwrap().pop();
        let mut response = Response::new(full(""));
        let status = if let Some(status) = refused {
            // Whoever is answered early may not get to read the answer.
            let _ = net::read_body(body, 1 << 20, Duration::from_secs(60)).await;
            status
        } else if head.method == http::Method::POST {
            let body = net::read_body(body, 1 << 20, Duration::from_secs(60)).await;
            let sent = (head.headers.clone(), body.unwrap());
            self.sent.lock().unwrap().push(sent);
            StatusCode::CREATED
        } else if let Some(to) = path.strip_prefix("/moved") {
            let to = to.parse().unwrap();
            response.headers_mut().insert(http::header::LOCATION, to);
            StatusCode::FOUND
        } else if let Some((bytes, etag)) = self.files.lock().unwrap().get(&path).cloned() {
            let known = head.headers.get("if-none-match");
            if let Some(etag) = etag {
                let etag = etag.parse().unwrap();
                response.headers_mut().insert(http::header::ETAG, etag);
            }
            match etag.is_some_and(|etag| known.is_some_and(|known| known == etag)) {
                true => StatusCode::NOT_MODIFIED,
                false => {
                    *response.body_mut() = full(bytes);
                    StatusCode::OK
                }
            }
        } else {
            StatusCode::NOT_FOUND
        };
        self.asked.lock().unwrap().push((path, status));
        *response.status_mut() = status;
        response
    }
}

struct Bench {
    server: Arc<Files>,
    url: String,
    transfers: Transfers,
    folder: tempfile::TempDir,
    _stop: watch::Sender<bool>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(TransferSettings::default()).await
    }

    async fn with(settings: TransferSettings) -> Self {
        let server = Arc::new(Files::default());
        let listener = net::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, shutdown) = net::shutdown();
        let handler = Arc::clone(&server);
        tokio::spawn(net::serve(
            listener,
            None,
            Limits::default(),
            handler,
            shutdown,
        ));
        let folder = tempfile::tempdir().unwrap();
        let transfers = Transfers::new(folder.path().join("cache"), settings).unwrap();
        std::fs::create_dir(folder.path().join("c")).unwrap();
        Self {
            server,
            url,
            transfers,
            folder,
            _stop: stop,
        }
    }

    fn offer(&self, path: &str, bytes: Vec<u8>, etag: Option<&'static str>) {
        let file = (bytes.into(), etag);
        self.server.files.lock().unwrap().insert(path.into(), file);
    }

    fn asked(&self) -> Vec<u16> {
        let asked = std::mem::take(&mut *self.server.asked.lock().unwrap());
        asked.iter().map(|(_, status)| status.as_u16()).collect()
    }

    async fn bring(&self, path: &str, key: &str, sum: &str) -> Result<u64, TransferError> {
        self.bring_within(path, key, sum, 0).await
    }

    async fn bring_within(
        &self,
        path: &str,
        key: &str,
        sum: &str,
        room: u64,
    ) -> Result<u64, TransferError> {
        let algorithm = if sum.is_empty() { "" } else { "md5" };
        let wanted = DownloadAction {
            from: format!("{}{path}", self.url),
            to: "/app".into(),
            cache_key: key.into(),
            checksum_algorithm: algorithm.into(),
            checksum_value: sum.into(),
            ..DownloadAction::default()
        };
        let archive = self.transfers.fetch(&wanted).await?;
        let fetched = archive.fetched;
        let container = self.folder.path().join("c");
        self.transfers
            .unpack(archive, &container, &wanted, room, None)
            .await?;
        Ok(fetched)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("c/app").join(name)).unwrap()
    }

    fn cached(&self) -> usize {
        let cached = std::fs::read_dir(self.folder.path().join("cache"));
        cached.unwrap().count()
    }
}

fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o755);
    header
}

/// A tar of these files.
fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = header(EntryType::Regular, content.len() as u64);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// One that holds an entry as no honest program writes it.
fn tar_with(kind: EntryType, name: &[u8], link: &str, content: &[u8]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    let mut header = header(kind, content.len() as u64);
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    if !link.is_empty() {
        header.set_link_name_literal(link).unwrap();
    }
    header.set_cksum();
    tar.append(&header, content).unwrap();
    tar.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut zip = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, content) in files {
        let options = zip
            .new_file(*name)
            .compression_method(rawzip::CompressionMethod::DEFLATE)
            .unix_permissions(0o755);
        let (mut entry, config) = options.start().unwrap();
        let deflated = flate2::write::DeflateEncoder::new(&mut entry, Compression::fast());
        let mut writer = config.wrap(deflated);
        writer.write_all(content).unwrap();
        let (deflated, descriptor) = writer.finish().unwrap();
        deflated.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap();
    bytes
}

#[tokio::test]
async fn archives_of_each_kind_are_unpacked() {
    let bench = Bench::new().await;
    let files: &[(&str, &[u8])] = &[("bin/run", b"#!/bin/sh\n"), ("a", b"1")];
    bench.offer("/tar", tar_of(files), None);
    bench.offer("/tgz", gz(&tar_of(&[("b", b"2")])), None);
    bench.offer("/zip", zip_of(&[("d/c", b"3"), ("a", b"4")]), None);
    bench.bring("/tar", "", "").await.unwrap();
    assert_eq!(bench.read("a"), "1");
    let run = bench.folder.path().join("c/app/bin/run");
    assert_eq!(run.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    bench.bring("/moved/tgz", "", "").await.unwrap();
    assert_eq!(bench.read("b"), "2");
    bench.bring("/zip", "", "").await.unwrap();
    assert_eq!((&*bench.read("d/c"), &*bench.read("a")), ("3", "4"));
    assert_eq!(bench.cached(), 0, "what has no key is not kept");
}

/// A file that is run cannot be written to; another one can take its name.
#[tokio::test]
async fn what_is_there_already_is_replaced() {
    let bench = Bench::new().await;
    bench.offer("/one", tar_of(&[("a", b"1")]), None);
    bench.offer("/two", zip_of(&[("a", b"2")]), None);
    bench.bring("/one", "", "").await.unwrap();
    let held = File::open(bench.folder.path().join("c/app/a")).unwrap();
    for (path, expected) in [("/one", "1"), ("/two", "2")] {
        bench.bring(path, "", "").await.unwrap();
        assert_eq!(bench.read("a"), expected);
    }
    let text = io::read_to_string(held).unwrap();
    assert_eq!(text, "1", "whoever has it open keeps it as it was");
}

#[tokio::test]
async fn a_hard_link_takes_the_place_of_what_is_there() {
    let bench = Bench::new().await;
    let mut tar = Builder::new(Vec::new());
    let mut file = header(EntryType::Regular, 1);
    tar.append_data(&mut file, "d/a", &b"1"[..]).unwrap();
    let mut link = header(EntryType::Link, 0);
    tar.append_link(&mut link, "d/b", "d/a").unwrap();
    tar.append_link(&mut link, "e/c", "/d/a").unwrap();
    bench.offer("/links", tar.into_inner().unwrap(), None);
    for _ in 0..2 {
        bench.bring("/links", "", "").await.unwrap();
        assert_eq!(bench.read("d/b"), "1");
        assert_eq!(bench.read("e/c"), "1");
    }
}

/// Only root can write into such folders as they are.
#[tokio::test]
async fn folders_that_nobody_may_write_into_have_what_is_in_them() {
    let bench = Bench::new().await;
    let mut tar = Builder::new(Vec::new());
    let folders = [("d", 0o555), ("d/e", 0)];
    for (name, mode) in folders {
        let mut folder = header(EntryType::Directory, 0);
        folder.set_mode(mode);
        tar.append_data(&mut folder, name, &b""[..]).unwrap();
    }
    for name in ["d/a", "d/e/b"] {
        let mut file = header(EntryType::Regular, 1);
        tar.append_data(&mut file, name, &b"1"[..]).unwrap();
    }
    bench.offer("/closed", tar.into_inner().unwrap(), None);
    bench.bring("/closed", "", "").await.unwrap();
    assert_eq!(bench.read("d/a"), "1");
    let app = bench.folder.path().join("c/app");
    for (name, mode) in folders {
        let found = app.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
        // Whoever opens them up again can remove them.
        fs::set_permissions(app.join(name), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(bench.read("d/e/b"), "1");
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_container() {
    let bench = Bench::new().await;
    let out = bench.folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let absolute = out.display().to_string();
    let mut through_a_link = Builder::new(Vec::new());
    let mut link = header(EntryType::Symlink, 0);
    through_a_link.append_link(&mut link, "way", &out).unwrap();
    let mut file = header(EntryType::Regular, 1);
    through_a_link
        .append_data(&mut file, "way/x", &b"x"[..])
        .unwrap();
    let mut held_through_a_link = Builder::new(Vec::new());
    let mut link = header(EntryType::Symlink, 0);
    held_through_a_link
        .append_link(&mut link, "way", bench.folder.path())
        .unwrap();
    let mut link = header(EntryType::Link, 0);
    held_through_a_link
        .append_link(&mut link, "x", "/way/secret")
        .unwrap();
    let archives = [
        ("up", tar_with(EntryType::Regular, b"../../out/x", "", b"x")),
        ("link", through_a_link.into_inner().unwrap()),
        ("hard", tar_with(EntryType::Link, b"x", "../../secret", b"")),
        ("root", tar_with(EntryType::Link, b"x", "/etc/passwd", b"")),
        ("held", held_through_a_link.into_inner().unwrap()),
        ("device", tar_with(EntryType::Char, b"x", "", b"")),
        ("pipe", tar_with(EntryType::Fifo, b"x", "", b"")),
        ("sparse", tar_with(EntryType::GNUSparse, b"x", "", b"")),
        ("zip", zip_of(&[("../../out/x", b"x")])),
    ];
    std::fs::write(bench.folder.path().join("secret"), "s").unwrap();
    for (name, archive) in archives {
        bench.offer("/bad", archive, None);
        let brought = bench.bring("/bad", "", "").await;
        // A zip's name is bent inwards, which is as good.
        assert!(brought.is_err() || name == "zip", "{name}");
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0, "{name}");
        assert!(!bench.folder.path().join("c/app/x").exists(), "{name}");
    }
    // A link that was there before, and a path that leads out.
    bench.offer("/good", tar_of(&[("x", b"x")]), None);
    std::os::unix::fs::symlink(&absolute, bench.folder.path().join("c/away")).unwrap();
    for to in ["/away", "away/deep", "../out"] {
        let wanted = DownloadAction {
            from: format!("{}/good", bench.url),
            to: to.into(),
            ..DownloadAction::default()
        };
        let archive = bench.transfers.fetch(&wanted).await.unwrap();
        let container = bench.folder.path().join("c");
        let unpacked = bench
            .transfers
            .unpack(archive, &container, &wanted, 0, None)
            .await;
        let error = unpacked.unwrap_err().to_string();
        assert!(
            error.contains("lies outside of the container"),
            "{to}: {error}"
        );
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
}

#[tokio::test]
async fn bombs_are_refused() {
    let bench = Bench::new().await;
    let zeros = vec![0; 3 << 20];
    let long = tar_with(EntryType::GNULongName, b"x", "", &vec![b'a'; 2 << 20]);
    let size = tar_with(EntryType::XHeader, b"x", "", b"18 size=123456789\n");
    for (name, archive) in [
        ("tar", gz(&tar_of(&[("x", &zeros)]))),
        ("zip", zip_of(&[("x", &zeros)])),
        ("name", gz(&long)),
        ("size", size),
    ] {
        bench.offer("/bomb", archive, None);
        let brought = bench.bring_within("/bomb", "", "", 1 << 20).await;
        let error = brought.unwrap_err().to_string();
        let expected = match name {
            "name" => "is described at too great a length",
            "size" => "is larger than 8 GiB",
            _ => "takes more than 1048576 bytes: disk quota exceeded",
        };
        assert!(error.contains(expected), "{name}: {error}");
        let written = bench.folder.path().join("c/app/x");
        assert!(!written.exists() || written.metadata().unwrap().len() <= 1 << 20);
    }
    bench.offer("/text", b"not an archive".to_vec(), None);
    let error = bench.bring("/text", "", "").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown archive format");

    let settings = TransferSettings {
        file_bytes: 1000,
        ..TransferSettings::default()
    };
    let bench = Bench::with(settings).await;
    bench.offer("/long", vec![0; 1001], None);
    let error = bench.bring("/long", "", "").await.unwrap_err();
    assert_eq!(error.to_string(), "the file is larger than 1000 bytes");
    assert_eq!(bench.asked(), [200], "it will not become shorter");
    assert_eq!(bench.cached(), 0, "what came of it is gone");
}

#[tokio::test]
async fn what_is_kept_is_asked_for_and_not_fetched_again() {
    let bench = Bench::new().await;
    bench.offer("/app", tar_of(&[("a", b"1")]), Some("\"v1\""));
    assert_eq!(bench.bring("/app", "k", "").await.unwrap(), 2048);
    assert_eq!(bench.bring("/app", "k", "").await.unwrap(), 0);
    assert_eq!(bench.asked(), [200, 304]);
    assert_eq!(bench.cached(), 1);
    bench.offer("/app", tar_of(&[("a", b"2")]), Some("\"v2\""));
    assert_eq!(bench.bring("/app", "k", "").await.unwrap(), 2048);
    assert_eq!(bench.read("a"), "2");
    assert_eq!((bench.asked(), bench.cached()), (vec![200], 1));
    // One that somebody has removed is fetched again.
    for file in std::fs::read_dir(bench.folder.path().join("cache")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert_eq!(bench.bring("/app", "k", "").await.unwrap(), 2048);
    assert_eq!((bench.asked(), bench.cached()), (vec![200], 1));
    // Another checksum than that of what is kept.
    let sum = "00000000000000000000000000000000";
    let error = bench.bring("/app", "k", sum).await.unwrap_err();
    assert!(error.to_string().contains("checksum mismatch"), "{error}");
    // A server that does not say which version it has is asked anew each time.
    bench.offer("/app", tar_of(&[("a", b"3")]), None);
    bench.asked();
    assert_eq!(bench.bring("/app", "k", "").await.unwrap(), 2048);
    assert_eq!((bench.asked(), bench.cached()), (vec![200], 0));

    let settings = TransferSettings {
        cache_bytes: 5000,
        ..TransferSettings::default()
    };
    let bench = Bench::with(settings).await;
    bench.offer("/app", tar_of(&[("a", b"1")]), Some("\"v1\""));
    for key in ["one", "two", "one", "three"] {
        bench.bring("/app", key, "").await.unwrap();
    }
    assert_eq!(bench.cached(), 2);
    bench.asked();
    bench.bring("/app", "one", "").await.unwrap();
    bench.bring("/app", "two", "").await.unwrap();
    assert_eq!(
        bench.asked(),
        [304, 200],
        "the one that was used longest ago went"
    );
}

#[tokio::test]
async fn many_that_want_the_same_fetch_it_once() {
    let bench = Bench::new().await;
    bench.offer("/app", tar_of(&[("a", b"1")]), Some("\"v1\""));
    let wanted = DownloadAction {
        from: format!("{}/app", bench.url),
        cache_key: "k".into(),
        ..DownloadAction::default()
    };
    let all = (0..10).map(|_| bench.transfers.fetch(&wanted));
    for fetched in futures_util::future::join_all(all).await {
        assert_eq!(fetched.unwrap().file.metadata().unwrap().len(), 2048);
    }
    let mut asked = bench.asked();
    asked.sort_unstable();
    assert_eq!(asked.iter().filter(|status| **status == 200).count(), 1);
}

#[tokio::test]
async fn what_may_get_better_is_tried_again() {
    let bench = Bench::new().await;
    bench.offer("/app", tar_of(&[("a", b"1")]), None);
    *bench.server.refuses.lock().unwrap() = vec![StatusCode::SERVICE_UNAVAILABLE];
    bench.bring("/app", "", "").await.unwrap();
    assert_eq!(bench.asked(), [503, 200]);
    let sum = "00000000000000000000000000000000";
    let error = bench.bring("/app", "", sum).await.unwrap_err();
    assert!(error.to_string().contains("checksum mismatch"), "{error}");
    assert_eq!(bench.asked(), [200], "it will be the same file");
    for sum in ["short", "é"] {
        assert!(bench.bring("/app", "", sum).await.is_err());
    }
    assert!(bench.asked().is_empty(), "nothing can have such a sum");
    let error = bench.bring("/moved/moved/app", "", "").await;
    assert!(error.is_ok(), "{error:?}");
}

#[tokio::test]
async fn files_are_sent_with_their_sums() {
    let bench = Bench::new().await;
    let file = bench.folder.path().join("out");
    std::fs::write(&file, vec![b'x'; 200_000]).unwrap();
    let url = bench.url.replace("http://", "http://user:pass@");
    let url = Url::parse(&format!("{url}/to?a=b")).unwrap();
    *bench.server.refuses.lock().unwrap() = vec![StatusCode::BAD_GATEWAY];
    assert_eq!(bench.transfers.send(&file, &url).await.unwrap(), 200_000);
    assert_eq!(bench.asked(), [502, 201]);
    let (headers, body) = bench.server.sent.lock().unwrap().pop().unwrap();
    assert_eq!(body.len(), 200_000);
    assert_eq!(headers["content-length"], "200000");
    assert_eq!(headers["content-md5"], "S5gUZwXUsLmLdYp4/2+3Pw==");
    assert_eq!(headers["authorization"], "Basic dXNlcjpwYXNz");
    assert!(
        headers["content-digest"]
            .to_str()
            .unwrap()
            .starts_with("sha-256=:")
    );
    let refusals = vec![StatusCode::BAD_GATEWAY; 3];
    *bench.server.refuses.lock().unwrap() = refusals;
    let error = bench.transfers.send(&file, &url).await.unwrap_err();
    assert_eq!(error.to_string(), "Upload failed: Status code 502");
}

#[test]
fn what_nobody_waits_for_is_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let archives = [
        tar_of(&[("x", b"x")]),
        gz(&tar_of(&[("x", b"x")])),
        zip_of(&[("x", b"x")]),
    ];
    for archive in archives {
        let path = folder.path().join("archive");
        std::fs::write(&path, archive).unwrap();
        let into = folder.path().join("into");
        std::fs::create_dir_all(&into).unwrap();
        for given_up in [true, false] {
            let file = File::open(&path).unwrap();
            let unpacked = unpack(file, &into, Room::new(10), &AtomicBool::new(given_up));
            assert_eq!(unpacked.is_err(), given_up);
            let written = std::fs::read_to_string(into.join("x")).unwrap_or_default();
            assert_eq!(written.is_empty(), given_up);
        }
        std::fs::remove_dir_all(&into).unwrap();
    }
}
