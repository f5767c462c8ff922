use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn of(given: &str) -> (Vec<String>, Vec<String>) {
    let mut files = Vec::new();
    let given = given.split(' ').map(str::to_owned).collect();
    let kept = rewritten(given, &mut |path| {
        files.push(path.to_owned());
        Ok(format!("/load/{}", path.replace("a/", "")))
    });
    (kept.unwrap(), files)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn flags_about_workers_go_and_files_move() {
    for (given, kept, files) in [
        (
            "http://h/ --rate 5/s --workers 4 --nats=nats://n --session s -c 3 --kubernetes --image i",
            "http://h/ --rate 5/s -c 3",
            vec![],
        ),
        (
            "http://h/ -D a/b --cacert=a/c",
            "http://h/ -D /load/b --cacert /load/c",
            vec!["a/b", "a/c"],
        ),
        (
            "-kDa/b -kc3 http://h/",
            "-kD /load/b -kc 3 http://h/",
            vec!["a/b"],
        ),
        (
            "-d --nats -H -Dx http://h/",
            "-d --nats -H -Dx http://h/",
            vec![],
        ),
        ("-- --workers", "-- --workers", vec![]),
    ] {
        let (got, seen) = of(given);
        assert_eq!(got, words(kept), "{given}");
        assert_eq!(seen, files, "{given}");
    }
}

#[test]
fn files_named_in_a_file_of_requests_come_along() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("users.csv", "id\n1\n");
    write("b", "body");
    let requests = folder.path().join("requests.toml");
    write(
        "requests.toml",
        "tables = { users = 'users.csv' }\n[[journey]]\nname = 'j'\n[[journey.step]]\nname = 's'\nbody_file = 'b'\n",
    );
    let mut files = Files::default();
    let placed = files.add(requests.to_str().unwrap()).unwrap();
    assert_eq!(placed, "/load/requests.toml");
    files.add_named_in(&requests).unwrap();
    let names: Vec<&str> = files.contents.keys().map(String::as_str).collect();
    assert_eq!(names, ["b", "requests.toml", "users.csv"]);

    write("requests.toml", "tables = { users = 'x/users.csv' }\n");
    let error = files.add_named_in(&requests).unwrap_err().to_string();
    assert!(error.contains("beside"), "{error}");
}

#[test]
fn two_files_with_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Files::default();
    let mut add = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, name).unwrap();
        files.add(path.to_str().unwrap())
    };
    add("x/a").unwrap();
    add("x/a").unwrap();
    assert!(add("y/a").unwrap_err().to_string().contains("one name"));
}

#[test]
fn secrets_do_not_travel_in_a_config_map() {
    for (flag, flags) in [
        ("--key", "--cert c --key k"),
        ("--password-file", "--password-file p"),
    ] {
        let line = format!("headroom load http://h/ --workers 2 --kubernetes --image i {flags}");
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::Load(args) = cli.command else {
            panic!("{line}: not a load");
        };
        let (target, _) = Target::parse("http://h/").unwrap();
        let refused = render(&args, &target, 1).unwrap_err().to_string();
        assert!(refused.starts_with(flag), "{refused}");
    }
}

#[test]
fn the_password_of_a_database_is_not_left_behind_in_silence() {
    for (url, variable) in [
        ("redis://me@h/1", "REDISCLI_AUTH"),
        ("postgres://me@h/x", "PGPASSWORD"),
    ] {
        let (mut target, _) = Target::parse(url).unwrap();
        refuse_password(&target).unwrap();
        target.login.password = "hunter2".to_owned();
        let refused = refuse_password(&target).unwrap_err().to_string();
        assert!(refused.starts_with(variable), "{refused}");
        assert!(
            refused.contains("Secret") && !refused.contains("hunter2"),
            "{refused}"
        );
    }
}
