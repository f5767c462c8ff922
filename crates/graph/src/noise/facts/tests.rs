use super::*;

/// A folder with files, as the kernel shows them.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn facts_are_read() {
    let root = machine(&[
        ("proc/loadavg", "0.52 1.25 2.00 1/213 4711\n"),
        (
            "proc/pressure/cpu",
            "some avg10=12.50 avg60=3.00 avg300=0.10 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        ),
        ("sys/devices/system/cpu/isolated", "2-3\n"),
        ("sys/devices/system/cpu/smt/active", "1\n"),
        (
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave\n",
        ),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        ),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        (
            "proc/self/stat",
            "7 (a ) b) R 1 7 7 0 -1 4194304 9 0 0 0 0 0 0 0 -51 0 1 0 5 6 7 8 9 1 1 1 0 0 0 0 0 0 0 0 17 0 50 1 0 0 0 0 0 0 0 0 0 0 0\n",
        ),
    ]);
    let mut facts = Facts::read(root.path());
    assert_eq!(
        facts.load,
        Some(Load {
            m1: 0.52,
            m5: 1.25,
            m15: 2.0
        })
    );
    assert_eq!(
        facts.pressure,
        Some(Pressure {
            s10: 0.125,
            s60: 0.03
        })
    );
    assert_eq!(facts.isolated.as_deref(), Some("2-3"));
    assert_eq!(facts.smt, Some(true));
    assert_eq!(facts.huge_pages.as_deref(), Some("madvise"));
    assert_eq!(facts.rt_runtime_us, Some(950_000));
    assert_eq!(facts.scheduling.as_deref(), Some("fifo 50"));
    assert_eq!(facts.limits, Limits::default());
    facts.cpus = 1;
    let warnings = facts.warnings().join("\n");
    for word in ["0.52", "12.5", "powersave", "hpet", "950000 µs"] {
        assert!(warnings.contains(word), "{word} in {warnings}");
    }
}

#[test]
fn what_is_not_told_is_none_and_no_reason_to_warn() {
    let root = machine(&[]);
    let facts = Facts::read(root.path());
    assert_eq!((facts.load, facts.pressure), (None, None));
    assert_eq!(facts.warnings(), Vec::<String>::new());
}

#[test]
fn the_tightest_limit_of_version_2_holds() {
    let root = machine(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/cpu.max", "400000 100000\n"),
        ("sys/fs/cgroup/a/b/memory.max", "1048576\n"),
        ("sys/fs/cgroup/a/memory.max", "max\n"),
    ]);
    let limits = Facts::read(root.path()).limits;
    assert_eq!(limits.cpus, Some(1.5));
    assert_eq!(limits.memory, Some(1 << 20));
}

#[test]
fn limits_of_version_1_are_found_in_each_controllers_folder() {
    let root = machine(&[
        (
            "proc/self/cgroup",
            "4:memory:/m\n2:cpu,cpuacct:/c\n1:name=systemd:/\n0::/\n",
        ),
        ("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n"),
        ("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        (
            "sys/fs/cgroup/memory/m/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
    ]);
    let limits = Facts::read(root.path()).limits;
    assert_eq!(limits.cpus, Some(0.5));
    assert_eq!(limits.memory, None);
    assert!(Facts::read(root.path()).warnings().join("").contains("0.5"));
}

#[test]
fn wrong_texts_are_as_good_as_none() {
    let root = machine(&[
        ("proc/loadavg", "high\n"),
        ("proc/pressure/cpu", "some avg10=x\n"),
        ("proc/self/cgroup", "nonsense\n0::/../../etc\n::\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu\n"),
        ("sys/fs/cgroup/cpu.max", "5 0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always\n"),
    ]);
    let facts = Facts::read(root.path());
    assert_eq!(facts.load, None);
    assert_eq!(facts.pressure, None);
    assert_eq!(facts.huge_pages, None);
    assert_eq!(facts.limits, Limits::default());
}
