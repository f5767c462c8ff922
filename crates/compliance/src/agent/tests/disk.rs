//! Methods on a real disk, in a temporary folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::*;

type Snapshot = BTreeMap<String, (String, u32, Vec<u8>)>;

/// Kind, mode and content of all that is in a folder.
fn snapshot(folder: &Path) -> Snapshot {
    let (mut all, mut folders) = (Snapshot::new(), vec![folder.to_owned()]);
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(&one).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            let content = if data.is_file() {
                fs::read(&path).unwrap()
            } else if data.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
                    .into_bytes()
            } else {
                folders.push(path.clone());
                Vec::new()
            };
            let kind = format!("{:?}", data.file_type());
            all.insert(path.display().to_string(), (kind, data.mode(), content));
        }
    }
    all
}

fn on(folder: &Path) -> OnSystem<Disk> {
    let disk = Disk::new(folder, Site::with_folder(folder.join("agent")));
    OnSystem::new(disk, Duration::from_secs(1))
}

fn apply(folder: &Path, call: &Call, mode: PolicyMode) -> Applied {
    carry_out(&mut on(folder), call, mode)
}

/// `/f` with this content, a directory `/d` with a file in it, a link `/l` to `/f`.
fn folder(content: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("f"), content).unwrap();
    fs::set_permissions(at("f"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/x"), "x").unwrap();
    // Whatever the umask is.
    for (name, mode) in [("d", 0o755), ("d/x", 0o644)] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("f", at("l")).unwrap();
    folder
}

/// The rule of all methods: audits change nothing, what they find is what enforcing does, and
/// what was repaired is in order.
fn check(folder: &Path, call: &Call) -> Outcome {
    let before = snapshot(folder);
    let audited = apply(folder, call, Audit);
    assert_eq!(
        snapshot(folder),
        before,
        "{call:?} changed something in audit"
    );
    let enforced = apply(folder, call, Enforce);
    let after = snapshot(folder);
    match audited.outcome {
        Outcome::Success => {
            assert_eq!(enforced.outcome, Outcome::Success);
            assert_eq!(after, before);
        }
        Outcome::NonCompliant if enforced.outcome == Outcome::Repaired => {
            assert_ne!(after, before, "{call:?} repaired nothing");
            for mode in [Audit, Enforce] {
                let again = apply(folder, call, mode);
                assert_eq!(
                    again.outcome,
                    Outcome::Success,
                    "{call:?}: {}",
                    again.message
                );
            }
            assert_eq!(snapshot(folder), after, "{call:?} repaired twice");
        }
        _ => {
            assert_eq!(
                enforced.outcome,
                Outcome::Error,
                "{call:?}: {}",
                enforced.message
            );
            assert_eq!(after, before, "{call:?} failed half way");
        }
    }
    enforced.outcome
}

#[test]
fn files_are_repaired_once_and_keep_their_permissions() {
    for line in [
        "file_content path=/f|lines=a\nb => Repaired",
        "file_content path=/new/deep/f|lines=a => Repaired",
        "file_content path=/f|lines=one\ntwo => Success",
        "file_content path=/f|lines=three|enforce=false => Repaired",
        "file_content path=/l|lines=through the link => Repaired",
        "file_content path=/d|lines=a => Error",
        "file_lines_present path=/f|lines=two\nthree => Repaired",
        "file_lines_present path=/f|lines=two => Success",
        "file_lines_absent path=/f|lines=one => Repaired",
        "file_lines_absent path=/nothing|lines=one => Success",
        "file_key_value_present path=/f|key=k|value=v => Repaired",
        "file_absent path=/f => Repaired",
        "file_absent path=/l => Repaired",
        "file_absent path=/f/below => Success",
        "file_absent path=/d => Error",
        "directory_present path=/d/e/g => Repaired",
        "directory_present path=/d => Success",
        "directory_present path=/f => Error",
        "directory_absent path=/d|recursive=true => Repaired",
        "directory_absent path=/d => Error",
        "directory_absent path=/e => Success",
        "file_symlink_present source=d|path=/l => Repaired",
        "file_symlink_present path=/l|target=f => Success",
        "file_symlink_present path=/f|target=d => Error",
        "permissions path=/f|mode=0600 => Repaired",
        "permissions path=/f|mode=640 => Success",
        "permissions path=/l|mode=0600 => Error",
        "permissions path=/f|owner=nobody => Error",
        "permissions_recursive path=/d|mode=0700 => Repaired",
        "permissions_type_recursion path=/d|mode=0600|type=files|recursion=inf => Repaired",
        "permissions_dirs path=/f|mode=0700 => Success",
        "file_from_local_source source=/f|path=/copy => Repaired",
        "file_from_local_source_recursion source=/d|path=/copy|recursion=inf => Repaired",
        "file_from_local_source_with_check source=/f|path=/copy|check_command=true => Error",
        "file_from_shared_folder source=s|path=/copy => Error",
        "file_from_string_mustache template={{#classes.any}}a{{/classes.any}}|path=/f => Repaired",
        "file_block_present_in_section path=/f|section_start=<|section_end=>|block=x\ny => Repaired",
        "file_key_value_present_in_ini_section path=/f|section=s|name=k|value=v => Repaired",
        "file_replace_lines path=/f|line=o(.*)|replacement=0${match.1} => Repaired",
        "file_replace_lines path=/f|line=o( => Error",
        "environment_variable_present name=A|value=b => Repaired",
        "file_present path=/new/f => Repaired",
        "service_started name=ssh => Error",
        "user_shell login=root|shell=/bin/sh => Error",
        "sysctl_value key=vm.swappiness|value=1 => Error",
        "kernel_module_loaded name=loop => Error",
        "file_absent path=/../f => Error",
        "file_absent path=f => Error",
        "package_present name=ntp => Error",
        "audit_from_command command=true => Error",
    ] {
        let folder = folder("one\ntwo\n");
        let (call, outcome) = line.split_once(" => ").unwrap();
        let found = check(folder.path(), &call_of(call));
        assert_eq!(format!("{found:?}"), outcome, "{call}");
        if let Ok(data) = fs::metadata(folder.path().join("f"))
            && !call.starts_with("permissions")
        {
            assert_eq!(data.mode() & 0o7777, 0o640, "{call}");
        }
    }
}

#[test]
fn a_whole_policy_runs_on_a_disk() {
    let folder = folder("one\n");
    let mut second = call(
        "2",
        "file_lines_present",
        &[("path", "/f"), ("lines", "after")],
    );
    second.condition = "file_content__f_repaired".into();
    let calls = vec![
        call("1", "file_content", &[("path", "/f"), ("lines", "new")]),
        second,
    ];
    let policy = policy(Enforce, calls);
    let outcome = run_on(&policy, &mut on(folder.path()));
    assert_eq!(kinds(&outcome), ["result_repaired", "result_repaired"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("f")).unwrap(),
        "new\nafter\n"
    );
    let data = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(data, 3, "something temporary remains");
}

fn any_call() -> impl Strategy<Value = Call> {
    let path = prop_oneof![
        Just("/f"),
        Just("/d"),
        Just("/l"),
        Just("/new"),
        Just("/d/x")
    ];
    let text = "[ab=\n ]{0,6}";
    let flag = prop_oneof![Just("true"), Just("false")];
    // Who is not root must be able to look into a directory afterwards.
    let mode = prop_oneof![Just("0700"), Just("0755"), Just("750")];
    (0..9_usize, path, text, text, flag, mode).prop_map(|(which, path, one, two, flag, mode)| {
        let path = ("path", path);
        let lines = ("lines", one.as_str());
        match which {
            0 => call("1", "file_content", &[path, lines, ("enforce", flag)]),
            1 => call("1", "file_lines_present", &[path, lines]),
            2 => call("1", "file_lines_absent", &[path, lines]),
            3 => call(
                "1",
                "file_key_value_present",
                &[path, ("key", &one), ("value", &two)],
            ),
            4 => call("1", "file_absent", &[path]),
            5 => call("1", "directory_present", &[path]),
            6 => call("1", "directory_absent", &[path, ("recursive", flag)]),
            7 => call("1", "file_symlink_present", &[path, ("target", "f")]),
            _ => call("1", "permissions", &[path, ("mode", mode)]),
        }
    })
}

proptest! {
    #[test]
    fn audits_change_nothing_and_repairs_last(
        content in "[ab=\n ]{0,12}",
        calls in proptest::collection::vec(any_call(), 1..5),
    ) {
        let folder = folder(&content);
        for call in &calls {
            check(folder.path(), call);
        }
    }
}

/// A root with links out of it, and what they lead to.
struct Escape {
    all: tempfile::TempDir,
}

impl Escape {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        for folder in ["root/etc", "outside/victim"] {
            fs::create_dir_all(all.path().join(folder)).unwrap();
        }
        fs::write(all.path().join("outside/f"), "outside\n").unwrap();
        fs::write(all.path().join("outside/victim/x"), "x").unwrap();
        let one = Self { all };
        let root = one.root();
        symlink(one.outside(""), root.join("absolute")).unwrap();
        symlink("../../../../outside", root.join("etc/up")).unwrap();
        symlink(one.outside("f"), root.join("file")).unwrap();
        symlink("../outside/f", root.join("upfile")).unwrap();
        one
    }

    fn root(&self) -> std::path::PathBuf {
        self.all.path().join("root")
    }

    fn outside(&self, name: &str) -> std::path::PathBuf {
        self.all.path().join("outside").join(name)
    }

    fn apply(&self, method: &str, params: &[(&str, &str)]) -> Applied {
        let root = self.root();
        let disk = Disk::new(&root, Site::with_folder(self.all.path().join("agent")));
        let mut methods = OnSystem::new(disk, Duration::from_secs(1));
        carry_out(&mut methods, &call("i", method, params), Enforce)
    }
}

#[test]
fn no_link_leads_out_of_another_root() {
    let outside = {
        let escape = Escape::new();
        let before = snapshot(&escape.outside(""));
        let link = escape.outside("").display().to_string();
        // As a policy would make it.
        let made = escape.apply(
            "file_symlink_present",
            &[("source", &link), ("path", "/made")],
        );
        assert_eq!(made.outcome, Outcome::Repaired, "{}", made.message);
        for base in ["/made", "/absolute", "/etc/up"] {
            let at = |name: &str| format!("{base}/{name}");
            let (written, victim, file) = (at("written"), at("victim"), at("f"));
            for (method, params) in [
                ("file_content", &[("path", &*written), ("lines", "a")][..]),
                ("file_present", &[("path", &*written)]),
                ("file_lines_present", &[("path", &*file), ("lines", "a")]),
                ("file_absent", &[("path", &*file)]),
                (
                    "directory_absent",
                    &[("path", &*victim), ("recursive", "true")],
                ),
                ("directory_absent", &[("path", base), ("recursive", "true")]),
                ("directory_present", &[("path", &*at("made/deep"))]),
                ("permissions", &[("path", &*file), ("mode", "0600")]),
                (
                    "permissions_recursive",
                    &[("path", &*victim), ("mode", "0700")],
                ),
                (
                    "file_symlink_present_force",
                    &[("source", "/x"), ("path", &*file)],
                ),
                (
                    "file_from_local_source",
                    &[("source", &*file), ("path", "/copy")],
                ),
                (
                    "file_from_local_source_recursion",
                    &[
                        ("source", &*victim),
                        ("path", "/copies"),
                        ("recursion", "inf"),
                    ],
                ),
                (
                    "file_from_local_source",
                    &[("source", "/etc"), ("path", &*written)],
                ),
                (
                    "file_from_string_mustache",
                    &[("template", "a"), ("path", &*at("template"))],
                ),
            ] {
                escape.apply(method, params);
                assert_eq!(snapshot(&escape.outside("")), before, "{method} {params:?}");
            }
        }
        for path in ["/file", "/upfile"] {
            escape.apply("file_content", &[("path", path), ("lines", "a")]);
            escape.apply("permissions", &[("path", path), ("mode", "0600")]);
            escape.apply("file_lines_absent", &[("path", path), ("lines", "outside")]);
            assert_eq!(snapshot(&escape.outside("")), before, "{path}");
        }
        assert!(!escape.root().join("copy").exists());
        before
    };
    assert_eq!(outside.len(), 3);
}

#[test]
fn links_below_another_root_lead_to_what_is_there() {
    let escape = Escape::new();
    let root = escape.root();
    fs::create_dir(root.join("real")).unwrap();
    symlink("/real", root.join("link")).unwrap();
    symlink("../real/f", root.join("etc/f")).unwrap();
    symlink("../../../../real/f", root.join("etc/far")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    fs::write(root.join("real/f"), "one\n").unwrap();
    fs::set_permissions(root.join("real/f"), fs::Permissions::from_mode(0o640)).unwrap();
    let content = || fs::read_to_string(root.join("real/f")).unwrap();
    for (path, text) in [
        ("/link/f", "two"),
        ("/etc/f", "three"),
        ("/etc/far", "four"),
    ] {
        let done = escape.apply("file_content", &[("path", path), ("lines", text)]);
        assert_eq!(done.outcome, Outcome::Repaired, "{}", done.message);
        assert_eq!(content(), format!("{text}\n"));
        let again = escape.apply("file_content", &[("path", path), ("lines", text)]);
        assert_eq!(again.outcome, Outcome::Success);
    }
    assert_eq!(
        fs::metadata(root.join("real/f")).unwrap().mode() & 0o777,
        0o640
    );
    let done = escape.apply("permissions", &[("path", "/link/f"), ("mode", "0600")]);
    assert_eq!(done.outcome, Outcome::Repaired, "{}", done.message);
    assert_eq!(
        fs::metadata(root.join("real/f")).unwrap().mode() & 0o777,
        0o600
    );
    let done = escape.apply("directory_present", &[("path", "/link/a/b")]);
    assert_eq!(done.outcome, Outcome::Repaired, "{}", done.message);
    assert!(root.join("real/a/b").is_dir());
    for (path, outcome) in [
        ("/link", Outcome::Success),
        ("/etc/f", Outcome::Error),
        ("/loop", Outcome::Error),
    ] {
        let done = escape.apply("directory_present", &[("path", path)]);
        assert_eq!(done.outcome, outcome, "{path}: {}", done.message);
    }
    let done = escape.apply("file_content", &[("path", "/loop/f"), ("lines", "a")]);
    assert_told(&done, Outcome::Error, "symbolic link");
    // What is removed is the link, and of a directory never what links in it lead to.
    symlink("/etc", root.join("real/a/etc")).unwrap();
    fs::write(root.join("etc/kept"), "").unwrap();
    let done = escape.apply(
        "directory_absent",
        &[("path", "/real/a"), ("recursive", "true")],
    );
    assert_eq!(done.outcome, Outcome::Repaired, "{}", done.message);
    assert!(!root.join("real/a").exists() && root.join("etc/kept").exists());
    let done = escape.apply("file_absent", &[("path", "/etc/f")]);
    assert_eq!(done.outcome, Outcome::Repaired, "{}", done.message);
    assert_eq!(content(), "four\n");
}

#[test]
fn on_the_machine_links_lead_where_they_lead() {
    let escape = Escape::new();
    let mut disk = Disk::new("/", Site::default());
    let at = |name: &str| escape.root().join(name).display().to_string();
    disk.write(&at("absolute/f"), b"a").unwrap();
    assert_eq!(fs::read(escape.outside("f")).unwrap(), b"a");
    disk.write(&at("file"), b"b").unwrap();
    assert_eq!(fs::read(escape.outside("f")).unwrap(), b"b");
    assert_eq!(disk.read(&at("upfile"), 9).unwrap(), Some(b"b".to_vec()));
    let mode = || fs::metadata(escape.outside("f")).unwrap().mode() & 0o777;
    disk.set_mode(&at("absolute/f"), 0o600).unwrap();
    assert_eq!(mode(), 0o600);
    // A link that somebody put there since it was looked at hands nothing over.
    assert!(disk.set_mode(&at("file"), 0o666).is_err());
    assert_eq!(mode(), 0o600);
    assert_eq!(disk.list(&at("absolute"), 9).unwrap(), ["f", "victim"]);
    disk.make_directory(&at("absolute/new/deep")).unwrap();
    assert!(escape.outside("new/deep").is_dir());
    let kind = |path: &str| disk.stat(path).unwrap().map(|stat| stat.kind);
    assert_eq!(kind(&at("absolute/")), Some(Kind::Directory));
    assert_eq!(kind(&at("file/")), None);
    disk.remove(&at("absolute/new"), true).unwrap();
    assert!(!escape.outside("new").exists());
    disk.remove(&at("file"), false).unwrap();
    assert!(escape.outside("f").exists());
    // A link that leads nowhere gives way to what is written.
    symlink("/nowhere/at/all", escape.root().join("dangling")).unwrap();
    disk.write(&at("dangling"), b"c").unwrap();
    assert!(escape.root().join("dangling").is_file());
    let shown = disk.stat("/").unwrap().unwrap();
    assert_eq!(shown.kind, Kind::Directory);
    assert!(disk.read("/etc/../etc/passwd", 1 << 20).is_err());
}

#[test]
fn what_takes_the_place_of_a_link_has_the_rights_of_a_new_file() {
    let escape = Escape::new();
    let root = escape.root();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    fs::write(root.join("usual"), "").unwrap();
    let usual = mode(&root.join("usual"));
    // Below another root, and on the machine.
    let below = ("/one".to_owned(), Disk::new(&root, Site::default()));
    let whole = root.join("two").display().to_string();
    let machine = (whole, Disk::new("/", Site::default()));
    for ((path, mut disk), name) in [(below, "one"), (machine, "two")] {
        let at = root.join(name);
        symlink("/no/such/place", &at).unwrap();
        disk.write(&path, b"password=x").unwrap();
        assert!(fs::symlink_metadata(&at).unwrap().is_file());
        assert_eq!(format!("{:o}", mode(&at)), format!("{usual:o}"), "{path}");
        // A file that is there keeps what it has.
        fs::set_permissions(&at, fs::Permissions::from_mode(0o400)).unwrap();
        disk.write(&path, b"password=y").unwrap();
        assert_eq!(mode(&at), 0o400);
    }
    // Every method that writes.
    for (number, (method, params)) in [
        ("file_content", &[("lines", "a")][..]),
        ("file_present", &[]),
        ("file_lines_present", &[("lines", "a")]),
        ("file_key_value_present", &[("key", "a"), ("value", "b")]),
        ("file_block_present", &[("block", "a")]),
        ("file_from_string_mustache", &[("template", "a")]),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/link{number}");
        let at = root.join(&path[1..]);
        symlink("/no/such/place", &at).unwrap();
        let params: Vec<_> = [("path", &*path)]
            .into_iter()
            .chain(params.iter().copied())
            .collect();
        let done = escape.apply(method, &params);
        assert_eq!(
            done.outcome,
            Outcome::Repaired,
            "{method}: {}",
            done.message
        );
        assert_eq!(format!("{:o}", mode(&at)), format!("{usual:o}"), "{method}");
    }
}

#[test]
fn another_root_is_made_by_the_first_file_in_it() {
    let all = tempfile::tempdir().unwrap();
    let root = all.path().join("not/yet");
    let mut disk = Disk::new(&root, Site::default());
    assert_eq!(disk.stat("/motd").unwrap(), None);
    assert_eq!(disk.read("/motd", 9).unwrap(), None);
    disk.write("/motd", b"a").unwrap();
    assert_eq!(fs::read(root.join("motd")).unwrap(), b"a");
}

#[test]
fn as_many_lines_are_lacking_as_are_added() {
    for (content, wanted, told) in [
        ("one", "two", "it lacks 1 line"),
        ("one\n", "two", "it lacks 1 line"),
        ("one\n\n", "two\nthree", "it lacks 2 lines"),
        ("one", "one\ntwo\nthree\nfour", "it lacks 3 lines"),
        ("", "one\ntwo", "it lacks 2 lines"),
    ] {
        let folder = folder(content);
        let params = [("path", "/f"), ("lines", wanted)];
        let call = call("i", "file_lines_present", &params);
        let audited = apply(folder.path(), &call, Audit);
        assert!(
            audited.message.ends_with(told),
            "{content:?}: {}",
            audited.message
        );
    }
    let folder = folder("one");
    let all_there = call(
        "i",
        "file_lines_present",
        &[("path", "/f"), ("lines", "one")],
    );
    let audited = apply(folder.path(), &all_there, Audit);
    assert_eq!(audited.outcome, Outcome::Success);
}
