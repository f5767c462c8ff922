//! What the binary can start, simulate and drive, as plain data.
//!
//! The laboratory links no system. The binary that joins both hands a
//! [`Catalogue`] to the checker, so that every name in a file can be checked.

/// Everything that a file may name without describing it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    /// Sub-commands that `builtin = "..."` starts.
    pub builtins: Vec<Builtin>,
    /// Kinds of simulated agent for `[[fleet]]`.
    pub fleets: Vec<FleetKind>,
    /// Drivers for `[[driver]] kind = "..."`.
    pub drivers: Vec<DriverSpec>,
    /// Whether whoever starts a run here may mount file systems, which the `disk` of a system
    /// needs.
    pub may_mount: bool,
    /// Tries whether a run here can have a network of its own.
    pub own_network: OwnNetwork,
}

/// Tries whether a run can have a network of its own, with rules of the kernel: why not, in a
/// sentence. It is tried only for a file that asks for it.
#[derive(Debug, Clone, Copy)]
pub struct OwnNetwork(pub fn() -> Result<(), String>);

impl Default for OwnNetwork {
    fn default() -> Self {
        Self(|| Ok(()))
    }
}

/// What is tried is the machine's matter: a catalogue is the same on any.
impl PartialEq for OwnNetwork {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Catalogue {
    /// Contradictions within the catalogue itself, as sentences: a driver or a kind of agent
    /// whose builtin is missing, or one that lacks a flag that a file could make it give.
    /// The binary's tests hold this empty.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let find = |command: &str| self.builtins.iter().find(|known| known.command == command);
        for driver in &self.drivers {
            if find(&driver.builtin).is_none() {
                let (kind, builtin) = (&driver.kind, &driver.builtin);
                problems.push(format!("driver {kind}: no builtin \"{builtin}\""));
            }
        }
        for fleet in &self.fleets {
            let Some(builtin) = find(&fleet.builtin) else {
                problems.push(format!(
                    "fleet {}: no builtin \"{}\"",
                    fleet.kind, fleet.builtin
                ));
                continue;
            };
            let fixed = fleet.talk_to_flag.iter().chain([&fleet.args]);
            let mut flags: Vec<(String, bool)> = fixed
                .flat_map(|line| line.split_whitespace())
                .filter(|word| word.starts_with("--"))
                .map(|word| (word.to_owned(), true))
                .collect();
            flags.push(("--count".to_owned(), true));
            flags.extend(fleet.seed_flag.iter().map(|flag| (flag.clone(), true)));
            flags.extend(
                fleet
                    .settings
                    .iter()
                    .map(|setting| (setting.flag(), setting.value != SettingValue::Flag)),
            );
            for (name, takes_value) in flags {
                let wanted = Flag { name, takes_value };
                if !builtin.flags.contains(&wanted) {
                    let form = if takes_value { "with" } else { "without" };
                    let (kind, command) = (&fleet.kind, &builtin.command);
                    problems.push(format!(
                        "fleet {kind}: \"{command}\" has no {} {form} a value",
                        wanted.name
                    ));
                }
            }
        }
        problems
    }
}

/// A sub-command of the binary that runs as a system.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Builtin {
    /// Its words, for instance `cells bbs`.
    pub command: String,
    /// One sentence about what it is.
    pub about: String,
    /// Every flag that it understands.
    pub flags: Vec<Flag>,
}

/// A flag of a [`Builtin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name with dashes, for instance `--listen`.
    pub name: String,
    /// Does a value follow, as the next word or after `=`?
    pub takes_value: bool,
}

impl Flag {
    /// A flag that is followed by a value.
    pub fn value(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            takes_value: true,
        }
    }

    /// A flag that stands alone.
    pub fn switch(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            takes_value: false,
        }
    }
}

/// A kind of simulated agent: many agents in one process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetKind {
    /// The word in `kind = "..."`.
    pub kind: String,
    /// One sentence about what is simulated.
    pub about: String,
    /// The [`Builtin::command`] that simulates it. It understands `--count N`
    /// and one flag for each setting: `delays.create` is `--delays-create`.
    pub builtin: String,
    /// Arguments that are always given, for instance `--listen {addr}`; may hold
    /// `{addr}`, `{port}`, `{work}` and `{index}` of its own process.
    pub args: String,
    /// Arguments for `talk_to`, for instance `--bbs http://{addr}`; `{addr}` and
    /// `{port}` are those of the system that is talked to. `None`: the kind
    /// talks to nobody and `talk_to` is refused.
    pub talk_to_flag: Option<String>,
    /// The flag that takes the seed of the experiment; `None`: nothing is random.
    pub seed_flag: Option<String>,
    /// The signal of readiness, unless the file gives another.
    pub ready: Option<crate::plan::Ready>,
    /// What a file may say about the agents.
    pub settings: Vec<Setting>,
}

/// A key that a file may give, with the form of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key; a dot leads into a nested table, as in `delays.create`.
    pub key: String,
    /// The form of its value.
    pub value: SettingValue,
}

impl Setting {
    /// A setting.
    pub fn new(key: impl Into<String>, value: SettingValue) -> Self {
        Self {
            key: key.into(),
            value,
        }
    }

    /// The flag that hands this setting to a builtin: `--delays-create`.
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace(['.', '_'], "-"))
    }
}

/// The form of a setting's value. It is handed on as it is written in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// A whole number from 0 to 10,000,000.
    Count,
    /// A size: `12GiB`.
    Bytes,
    /// A length of time: `50ms`.
    Duration,
    /// A length of time that may vary: `0`, `50ms`, `uniform 10ms 90ms`,
    /// `exponential 50ms`, `lognormal 900ms p99=4s` (its median, then its 99th
    /// percentile), `5s +- 20%`.
    Distribution,
    /// A share: a number from 0 to 1, or `10%`.
    Share,
    /// Any text.
    Text,
    /// One of these words.
    Choice(Vec<String>),
    /// `true` gives the flag, `false` leaves it out.
    Flag,
}

/// A driver that is built in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DriverSpec {
    /// The word in `kind = "..."`.
    pub kind: String,
    /// One sentence about what it drives.
    pub about: String,
    /// The [`Builtin::command`] that is the driver: it speaks the protocol of driver
    /// programs on its standard input and output.
    pub builtin: String,
    /// What it can make.
    pub entities: Vec<EntityKind>,
}

/// A kind of entity that a driver makes and counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntityKind {
    /// Its name, for instance `task`.
    pub what: String,
    /// The states that are counted, in order of a life.
    pub states: Vec<String>,
    /// The values of `as`; empty: `as` is refused.
    pub shapes: Vec<String>,
    /// Further settings of `make`.
    pub options: Vec<Setting>,
}
