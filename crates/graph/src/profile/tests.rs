use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::*;
use crate::topology::of_text as graph;
use document::Source;

fn now() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(time.as_secs()).unwrap()
}

/// What looks find until nothing is new twice.
fn looks(watch: &mut Watch) -> Vec<Result<String, String>> {
    let found = (0..4).filter_map(|_| watch.look(now()));
    found.map(|one| one.map(|source| source.text)).collect()
}

fn watch(path: &Path) -> Watch {
    Watch::new(path, &Source::read(path).unwrap())
}

#[test]
fn each_content_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.toml");
    fs::write(&path, "a").unwrap();
    let mut watch = watch(&path);
    assert!(looks(&mut watch).is_empty());
    for text in ["b", "a", "c"] {
        fs::write(&path, text).unwrap();
        assert_eq!(looks(&mut watch), [Ok(text.to_owned())]);
        assert!(looks(&mut watch).is_empty());
    }
}

#[test]
fn a_file_that_is_saved_again_is_told_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("graph.toml"), folder.path().join("next"));
    fs::write(&path, "a").unwrap();
    let mut watch = watch(&path);
    for _ in 0..2 {
        assert!(looks(&mut watch).is_empty());
        fs::write(&next, "a").unwrap();
        fs::rename(&next, &path).unwrap();
        assert_eq!(looks(&mut watch), [Ok("a".to_owned())]);
    }
}

#[test]
fn a_file_that_is_being_written_is_not_read_by_halves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.toml");
    fs::write(&path, "old").unwrap();
    let mut watch = watch(&path);
    for text in ["", "n", "ne"] {
        fs::write(&path, text).unwrap();
        assert!(watch.look(now()).is_none(), "{text:?} was taken");
    }
    fs::write(&path, "new").unwrap();
    assert_eq!(looks(&mut watch), [Ok("new".to_owned())]);
}

#[test]
fn a_link_that_points_elsewhere_counts() {
    // As the kubelet: file -> ..data/file, ..data -> a folder of that moment.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (moment, text) in [("one", "a"), ("two", "b")] {
        fs::create_dir(at(moment)).unwrap();
        fs::write(at(moment).join("graph.toml"), text).unwrap();
    }
    symlink("one", at("..data")).unwrap();
    symlink("..data/graph.toml", at("graph.toml")).unwrap();
    let mut watch = watch(&at("graph.toml"));
    assert!(looks(&mut watch).is_empty());
    symlink("two", at("..next")).unwrap();
    fs::rename(at("..next"), at("..data")).unwrap();
    assert_eq!(looks(&mut watch), [Ok("b".to_owned())]);
}

#[test]
fn a_file_that_is_gone_is_told_of_and_may_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.toml");
    fs::write(&path, "a").unwrap();
    let mut watch = watch(&path);
    fs::remove_file(&path).unwrap();
    let found = looks(&mut watch);
    assert!(
        matches!(&found[..], [Err(why)] if why.contains("graph.toml")),
        "{found:?}"
    );
    fs::write(&path, "a").unwrap();
    assert_eq!(looks(&mut watch), [Ok("a".to_owned())]);
}

#[test]
fn an_old_file_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.toml");
    fs::write(&path, "a").unwrap();
    let mut watch = watch(&path);
    // Ten seconds on, the first look reads it; from then on its stamp is enough.
    assert!(watch.look(now() + 10).is_none());
    let times = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "b").unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(times).unwrap();
    assert!((0..4).all(|_| watch.look(now() + 10).is_none()));
}

#[test]
fn the_last_refusal_stands_until_one_is_taken() {
    let source = |text: &str| Source {
        name: "graph.toml".into(),
        text: text.into(),
    };
    let profile = Profile::new(source("a"));
    profile.refused("no".into(), 7);
    assert_eq!(profile.source().text, "a");
    let refusal = Refusal {
        error: "no".into(),
        unix_s: 7,
    };
    assert_eq!(profile.refusal(), Some(refusal));
    profile.taken(source("b"));
    assert_eq!(
        (profile.source().text.as_str(), profile.refusal()),
        ("b", None)
    );
    assert_eq!(profile.refusals(), 1);
}

const GRAPH: &str = r#"
[services.root]
entry = true
cpus = "0"
steps = [{ call = "leaf" }]
[services.leaf]
replicas = 2
"#;

#[test]
fn some_things_cannot_change_while_a_graph_runs() {
    let change = |from: &str, to: &str| {
        assert!(GRAPH.contains(from), "{from}");
        let changed = GRAPH.replace(from, to);
        fixed(&graph(GRAPH), &graph(&changed)).map_err(|error| error.to_string())
    };
    for (from, to, what) in [
        (
            "replicas = 2",
            "replicas = 3",
            "replicas of the service leaf",
        ),
        (
            "replicas = 2",
            "replicas = 2\nprotocol = \"grpc\"",
            "protocol",
        ),
        ("cpus = \"0\"", "", "placement"),
        (
            "[services.leaf]",
            "[services.new]\n[services.leaf]\nsteps = [{ call = \"new\" }]",
            "adds new;",
        ),
        ("leaf", "stem", "leaves out leaf;"),
    ] {
        let error = change(from, to).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    change(
        "replicas = 2",
        "replicas = 2\nsteps = [{ sleep = \"1ms\" }]",
    )
    .unwrap();
}
