//! The texts of `/proc`, as pure functions.

/// A text of `/proc` does not have its usual form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} has no {missing}")]
pub struct Malformed {
    /// Which text.
    pub what: &'static str,
    /// What was not found in it.
    pub missing: &'static str,
}

/// What is used of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name of the command, at most 15 bytes, whatever characters it has.
    pub(crate) command: String,
    /// State: `R` running, `S` sleeping, `Z` gone but not yet collected, and more.
    pub(crate) state: char,
    /// Process that started this one, or whoever took it over when that one ended.
    pub(crate) parent: u32,
    /// Process group.
    pub(crate) group: u32,
    /// Session.
    pub(crate) session: u32,
    /// Processor time in user mode, in clock ticks.
    pub(crate) user_ticks: u64,
    /// Processor time in the kernel, in clock ticks.
    pub(crate) system_ticks: u64,
    /// Processor time of children that ended and were waited for, and of theirs, in
    /// clock ticks.
    pub(crate) children_ticks: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// When the process started, in clock ticks since boot. Together with the
    /// process id it tells a process from a later one with the same id.
    pub(crate) start_ticks: u64,
    /// Resident memory in pages.
    pub(crate) rss_pages: u64,
}

/// Reads `/proc/PID/stat`.
///
/// # Errors
/// When a field is missing or not a number.
pub(crate) fn parse_stat(text: &str) -> Result<Stat, Malformed> {
    let lacks = |missing| Malformed {
        what: "/proc/PID/stat",
        missing,
    };
    // The command may hold spaces and parentheses: it ends at the last one.
    let open = text.find('(').ok_or(lacks("command"))?;
    let close = text.rfind(')').ok_or(lacks("command"))?;
    let command = text
        .get(open + 1..close)
        .ok_or(lacks("command"))?
        .to_owned();
    let fields: Vec<&str> = text[close + 1..].split_ascii_whitespace().collect();
    // The first field after the command is number 3 in proc(5).
    let number = |field: usize, name| {
        fields
            .get(field - 3)
            .and_then(|text| text.parse::<u64>().ok())
            .ok_or(lacks(name))
    };
    let id = |field: usize, name| {
        let id = number(field, name)?;
        u32::try_from(id).map_err(|_| lacks(name))
    };
    Ok(Stat {
        command,
        state: fields
            .first()
            .and_then(|text| text.chars().next())
            .ok_or(lacks("state"))?,
        parent: id(4, "ppid")?,
        group: id(5, "pgrp")?,
        session: id(6, "session")?,
        user_ticks: number(14, "utime")?,
        system_ticks: number(15, "stime")?,
        children_ticks: number(16, "cutime")?.saturating_add(number(17, "cstime")?),
        threads: number(20, "num_threads")?,
        start_ticks: number(22, "starttime")?,
        rss_pages: number(24, "rss")?,
    })
}

/// How far a process is with putting its program in place, of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It has no memory: a thread of the kernel, or it has ended.
    NoMemory,
    /// In the middle of `execve`: arguments and environment may read as empty.
    NotYet,
    /// Its environment has so many bytes.
    Environment(u64),
}

/// Reads it. The kernel takes all the numbers of one memory. It writes where the code ends
/// (field 27) once arguments and environment are in place (fields 50 and 51; `load_elf_binary` of
/// Linux's `fs/binfmt_elf.c`).
///
/// # Errors
/// When a field is missing or not a number.
pub(crate) fn parse_placed(text: &str) -> Result<Placed, Malformed> {
    let lacks = |missing| Malformed {
        what: "/proc/PID/stat",
        missing,
    };
    let fields = text.rsplit_once(')').ok_or(lacks("command"))?.1;
    let number = |field: usize, name| {
        let text = fields.split_ascii_whitespace().nth(field - 3);
        let number = text.and_then(|text| text.parse::<u64>().ok());
        number.ok_or(lacks(name))
    };
    if number(23, "vsize")? == 0 {
        return Ok(Placed::NoMemory);
    }
    if number(27, "endcode")? == 0 {
        return Ok(Placed::NotYet);
    }
    let bytes = number(51, "env_end")?.saturating_sub(number(50, "env_start")?);
    Ok(Placed::Environment(bytes))
}

/// Resident memory and the process's share of it, in bytes, from
/// `/proc/PID/smaps_rollup`: a page that `n` processes have counts an `n`th in the share.
///
/// # Errors
/// When the text has no `Rss` or no `Pss` in kB.
pub(crate) fn parse_rollup(text: &str) -> Result<(u64, u64), Malformed> {
    let bytes = |key: &'static str| {
        kib_of(text, key).ok_or(Malformed {
            what: "/proc/PID/smaps_rollup",
            missing: key,
        })
    };
    Ok((bytes("Rss")?, bytes("Pss")?))
}

/// Processor time of the whole machine since boot, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// All of it.
    pub all: u64,
    /// What the hypervisor gave to others.
    pub stolen: u64,
    /// In which nobody had anything to do.
    pub idle: u64,
}

impl CpuTimes {
    /// Reads `/proc/stat`. A kernel that does not say anything has nothing stolen.
    pub fn parse(stat: &str) -> Self {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
        let fields = line.unwrap_or_default().split_ascii_whitespace();
        // user nice system idle iowait irq softirq steal; what follows is in user.
        let ticks: Vec<u64> = fields
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Self {
            all: ticks.iter().fold(0, |sum, more| sum.saturating_add(*more)),
            stolen: ticks.get(7).copied().unwrap_or(0),
            // Waiting for a disk is idling, too.
            idle: ticks.iter().skip(3).take(2).sum(),
        }
    }

    /// Those of now.
    pub fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Share of the time since `before` that was stolen, 0 to 1.
    pub fn share_stolen_since(&self, before: &Self) -> f64 {
        self.share_since(before, |times| times.stolen)
    }

    /// Share of the time since `before` in which nobody had anything to do, 0 to 1.
    pub fn share_idle_since(&self, before: &Self) -> f64 {
        self.share_since(before, |times| times.idle)
    }

    fn share_since(&self, before: &Self, of: fn(&Self) -> u64) -> f64 {
        let part = of(self).saturating_sub(of(before));
        match self.all.saturating_sub(before.all) {
            0 => 0.0,
            all => (part as f64 / all as f64).min(1.0),
        }
    }
}

/// Model of the processor from `/proc/cpuinfo`, whose key differs by architecture.
pub(crate) fn cpu_model(cpuinfo: &str) -> Option<&str> {
    ["model name", "Model", "cpu model", "uarch", "Processor"]
        .iter()
        .find_map(|key| value_of(cpuinfo, key))
}

/// Memory of the machine in bytes, from `/proc/meminfo`.
///
/// # Errors
/// When the text has no `MemTotal` in kB.
pub(crate) fn memory_bytes(meminfo: &str) -> Result<u64, Malformed> {
    kib_of(meminfo, "MemTotal").ok_or(Malformed {
        what: "/proc/meminfo",
        missing: "MemTotal in kB",
    })
}

/// A value that is given in kB, in bytes.
fn kib_of(text: &str, key: &str) -> Option<u64> {
    let kib: u64 = value_of(text, key)?
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

fn value_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.trim() == key)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Recorded from a Linux 6.18 kernel: `cat /proc/self/stat`.
    const CAT: &str = "20870 (cat) R 20689 20689 18910 0 -1 4194304 101 0 0 0 3 1 0 0 20 0 1 0 \
        168680 3133440 388 18446744073709551615 94330055528448 94330055548329 140732517420832 0 \
        0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 94330055564336 94330055565952 94330753077248 \
        140732517423792 140732517423812 140732517423812 140732517425131 0\n";

    #[test]
    fn a_recorded_stat_is_read() {
        let stat = parse_stat(CAT).unwrap();
        assert_eq!(
            stat,
            Stat {
                command: "cat".into(),
                state: 'R',
                parent: 20689,
                group: 20689,
                session: 18910,
                children_ticks: 0,
                user_ticks: 3,
                system_ticks: 1,
                threads: 1,
                start_ticks: 168_680,
                rss_pages: 388,
            }
        );
    }

    #[test]
    fn a_cut_stat_names_what_is_missing() {
        let cut = CAT.split(" 168680").next().unwrap();
        assert_eq!(parse_stat(cut).unwrap_err().missing, "starttime");
        assert_eq!(parse_stat("1 )(").unwrap_err().missing, "command");
        assert_eq!(parse_stat("").unwrap_err().missing, "command");
    }

    #[test]
    fn a_program_is_in_place_once_its_code_is() {
        let stat = |memory: u64, code: u64, from: u64, to: u64| {
            let between = "0 ".repeat(22);
            let text = format!(
                "7 (a) b) R {}{memory} 388 0 1 {code} {between}{from} {to} 0\n",
                "0 ".repeat(19)
            );
            parse_placed(&text)
        };
        assert_eq!(stat(0, 0, 0, 0), Ok(Placed::NoMemory));
        // Before the arguments, and between the first and the last variable.
        assert_eq!(stat(4096, 0, 0, 0), Ok(Placed::NotYet));
        assert_eq!(stat(4096, 0, 700, 700), Ok(Placed::NotYet));
        assert_eq!(stat(4096, 9, 700, 700), Ok(Placed::Environment(0)));
        assert_eq!(stat(4096, 9, 700, 742), Ok(Placed::Environment(42)));
        assert_eq!(parse_placed("7 (a) R 1 2").unwrap_err().missing, "vsize");
    }

    #[test]
    fn the_model_is_found_on_several_architectures() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n";
        assert_eq!(cpu_model(x86), Some("AMD EPYC"));
        let arm = "processor\t: 0\nBogoMIPS\t: 38.40\n\nModel\t\t: Raspberry Pi 4\n";
        assert_eq!(cpu_model(arm), Some("Raspberry Pi 4"));
        assert_eq!(cpu_model("processor : 0\nmodel name :\n"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        let meminfo = "MemTotal:       24690680 kB\nMemFree:          100 kB\n";
        assert_eq!(memory_bytes(meminfo), Ok(24_690_680 * 1024));
        assert!(memory_bytes("MemFree: 1 kB").is_err());
        assert!(memory_bytes("MemTotal: lots").is_err());
    }

    #[test]
    fn the_share_of_memory_is_read() {
        let rollup = "00400000-7ffd ---p 00000000 00:00 0    [rollup]\n\
            Rss:              300404 kB\nPss:              150202 kB\nPss_Dirty: 4 kB\n";
        assert_eq!(parse_rollup(rollup), Ok((300_404 * 1024, 150_202 * 1024)));
        assert_eq!(parse_rollup("Rss: 1 kB\n").unwrap_err().missing, "Pss");
    }

    #[test]
    fn idling_is_the_fourth_field_and_steal_the_eighth() {
        let before = CpuTimes::parse("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n");
        let after = CpuTimes::parse("cpu  160 0 60 810 10 0 5 55 9 0\ncpu0 1 2 3\n");
        let expected = CpuTimes {
            all: 1000,
            stolen: 35,
            idle: 810,
        };
        assert_eq!(before, expected);
        assert_eq!(after.share_stolen_since(&before), 0.2);
        assert_eq!(after.share_idle_since(&before), 0.1);
        assert_eq!(before.share_stolen_since(&after), 0.0);
        assert_eq!(CpuTimes::parse(""), CpuTimes::default());
        let now = CpuTimes::now();
        assert!((0.0..=1.0).contains(&CpuTimes::now().share_stolen_since(&now)));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_share(before in ".{0,80}", after in "cpu [ 0-9]{0,80}") {
            let (before, after) = (CpuTimes::parse(&before), CpuTimes::parse(&after));
            prop_assert!((0.0..=1.0).contains(&after.share_stolen_since(&before)));
        }

        #[test]
        fn any_command_name_is_kept(command in "[ -~()\n]{0,15}") {
            let text = CAT.replacen("cat", &command, 1);
            let stat = parse_stat(&text).unwrap();
            prop_assert_eq!(stat.command, command);
            prop_assert_eq!(stat.rss_pages, 388);
        }

        #[test]
        fn any_text_is_an_error_or_a_stat(text in "\\PC{0,200}") {
            let _ = parse_stat(&text);
            let _ = cpu_model(&text);
            let _ = memory_bytes(&text);
            let _ = parse_rollup(&text);
        }
    }
}
