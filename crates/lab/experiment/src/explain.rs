//! A plan in words, for people who want to know before they run it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::plan::{
    Connection, DriverKind, Every, Fault, FaultKind, FaultMechanism, Load, LoadModel, Make, OnExit,
    Plan, Probe, ProbeKind, Program, Rate, Ready, Schedule, Search, Step, StepLoad, Sweep, System,
    Template, Traffic,
};
use lab_load::arrivals::Process;
use units::{show_bytes, show_rate, show_share, write_duration};

impl Plan {
    /// What a run would do, as text of several lines.
    pub fn explain(&self) -> String {
        let mut out = format!("{}\n", self.name);
        if !self.about.is_empty() {
            let _ = writeln!(out, "  {}", self.about);
        }
        let _ = writeln!(out, "  seed {}", self.seed);
        if !self.network.is_of_the_machine() {
            let _ = writeln!(out, "  in a network of its own");
        }
        if !self.page.is_empty() {
            let words: Vec<&str> = self.page.iter().map(|act| act.word()).collect();
            let _ = writeln!(out, "  its page may {}", words.join(" and "));
        }
        if let Some(sweep) = &self.sweep {
            self.section(&mut out, "sweep", explain_sweep(sweep).into_iter());
        }
        self.section(
            &mut out,
            "start",
            self.start_order().into_iter().map(explain_system),
        );
        let drivers = self.drivers.iter().map(|driver| {
            let by = match &driver.kind {
                DriverKind::Builtin { kind, .. } => kind.clone(),
                DriverKind::Program(words) => words_of(words),
            };
            let kinds: Vec<&str> = driver.entities.keys().map(String::as_str).collect();
            format!("{}: {by} makes {}", driver.name, kinds.join(", "))
        });
        self.section(&mut out, "drive", drivers);
        self.section(&mut out, "send", self.loads.iter().map(explain_load));
        self.section(&mut out, "ask", self.probes.iter().map(explain_probe));
        let mined = self.lifecycles.iter().map(|lifecycle| {
            let points: Vec<&str> = lifecycle
                .points
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            format!(
                "{} by {}: {}",
                lifecycle.name,
                lifecycle.key.join(", "),
                points.join(" → ")
            )
        });
        let loops = self
            .loops
            .iter()
            .map(|turn| format!("turns of {}", turn.name));
        self.section(&mut out, "follow", mined.chain(loops));
        let steps = self.steps.iter();
        self.section(&mut out, "do", steps.map(|step| explain_step(self, step)));
        self.section(
            &mut out,
            "expect",
            self.expects.iter().map(|expect| expect.that.text.clone()),
        );
        let variants = self.variants.iter().map(|variant| {
            let set = variant.set.iter();
            let set: Vec<String> = set
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            format!("{}: {}", variant.name, set.join(", "))
        });
        self.section(&mut out, "variants", variants);
        let gates = self.gates.iter().flat_map(|gates| {
            let of = match &gates.sides {
                Some([base, new]) => format!("{new} beside {base}"),
                None => "one side beside the other".to_owned(),
            };
            let pairs = gates.pairs;
            gates.metrics.iter().map(move |gated| {
                let limit = show_share(gated.limit_share);
                format!(
                    "{}: {of}, not worse by more than {limit}, in {pairs} pairs at most",
                    gated.metric
                )
            })
        });
        self.section(&mut out, "compare", gates);
        out
    }

    /// The systems in an order in which each comes after those that it waits for;
    /// otherwise as in the file.
    pub fn start_order(&self) -> Vec<&System> {
        let mut waits: BTreeMap<usize, &System> = self.systems.iter().enumerate().collect();
        let mut order: Vec<&System> = Vec::new();
        while !waits.is_empty() {
            let started = |name: &String| order.iter().any(|system| system.name == *name);
            let next = waits
                .iter()
                .find(|(_, system)| system.after.iter().all(started));
            // A checked plan has no circles, so there always is one.
            let Some(at) = next.or(waits.iter().next()).map(|(at, _)| *at) else {
                break;
            };
            order.extend(waits.remove(&at));
        }
        order
    }

    fn section(&self, out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
        for (number, line) in lines.enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n{title}");
            }
            let _ = writeln!(out, "  {line}");
        }
    }
}

fn explain_sweep(sweep: &Sweep) -> Vec<String> {
    let values = sweep.over.iter();
    let mut lines: Vec<String> = values
        .map(|(name, values)| format!("{name}: {}", values.join(", ")))
        .collect();
    if let Some((name, range)) = &sweep.highest {
        lines.push(format!(
            "{name}: the highest from {} to {} with which all holds, within {}",
            range.written(range.from),
            range.written(range.to),
            show_share(range.within)
        ));
        return lines;
    }
    let settings = sweep.settings().len();
    lines.push(match sweep.times {
        1 => format!("{settings} runs"),
        times => format!("{settings} settings, {times} times each"),
    });
    lines
}

fn explain_system(system: &System) -> String {
    let program = match &system.program {
        Program::OwnBinary => "this binary,".to_owned(),
        Program::Path(path) => words_of(std::slice::from_ref(path)),
    };
    let mut text = format!("{}: {program} {}", system.name, words_of(&system.args));
    if let Some(needs) = &system.needs {
        let _ = write!(text, ", where {needs} is installed");
    }
    if system.count > 1 {
        let _ = write!(text, ", {} times", system.count);
    }
    if !system.after.is_empty() {
        let _ = write!(text, ", after {}", system.after.join(", "));
    }
    if let Some(bytes) = system.memory_bytes {
        let _ = write!(text, ", at most {}", show_bytes(bytes as f64));
    }
    if let Some(bytes) = system.disk_bytes {
        let _ = write!(text, ", a disk of {}", show_bytes(bytes as f64));
    }
    match system.on_exit {
        OnExit::Error => {}
        OnExit::Expected => text += ", may end",
        OnExit::Restart(after) => {
            let _ = write!(
                text,
                ", started again {} after its end",
                write_duration(after)
            );
        }
    }
    let signal = system.ready.as_ref().map(|ready| match ready {
        Ready::Tcp => "its port answers".to_owned(),
        Ready::Http(path) => format!("GET {path} succeeds"),
        Ready::Log(line) => format!("it logs \"{line}\""),
    });
    if let Some(signal) = signal {
        let within = write_duration(system.ready_within);
        let _ = write!(text, ", ready when {signal}, within {within}");
    }
    text
}

fn explain_load(load: &Load) -> String {
    let kinds = match load.requests().collect::<Vec<_>>().as_slice() {
        [only] => format!("{} {}{}", only.method, load.target, only.path),
        several => {
            let names: Vec<&str> = several
                .iter()
                .map(|request| request.name.as_str())
                .collect();
            format!("{} to {}", names.join(", "), load.target)
        }
    };
    let how = match &load.model {
        LoadModel::Closed { users, think } if think.is_zero() => format!("{users} users"),
        LoadModel::Closed { users, think } => {
            format!("{users} users, who think for {}", write_duration(*think))
        }
        LoadModel::Open { arrivals, process } => match arrivals {
            Some(Schedule::Arrivals(arrivals)) => arrivals.describe(),
            Some(Schedule::Trace(path)) => format!("at the times in {path}"),
            None => match process {
                Process::Poisson => "poisson arrivals".to_owned(),
                Process::Constant => "constant arrivals".to_owned(),
                Process::Burst(size) => format!("bursts of {size}"),
            },
        },
    };
    let mut text = format!("{}: {}, {how}", load.name, kinds.trim_start());
    if let Some(place) = &load.connect_to {
        text += &format!(", connecting to {place}");
    }
    if let Some(period) = &load.probe {
        let from = period.from.as_ref().map(|step| format!(" from {step:?}"));
        let to = period.to.as_ref().map(|step| format!(" to {step:?}"));
        let all = from.is_none() && to.is_none();
        text += if all { ", all the time" } else { "," };
        text += &from.into_iter().chain(to).collect::<String>();
    }
    text
}

fn explain_probe(probe: &Probe) -> String {
    let what = match &probe.kind {
        ProbeKind::Http { method, url, .. } => format!("{method} {url}"),
        ProbeKind::Tcp { address } => format!("connect to {address}"),
        ProbeKind::Grpc { address, .. } => format!("the health of {address}"),
        ProbeKind::Command { program, args, .. } => {
            let words: Vec<Template> = std::iter::once(program).chain(args).cloned().collect();
            words_of(&words)
        }
        ProbeKind::Prom { url, metric, .. } => format!("{metric} of {url}"),
        ProbeKind::Postgres { url, sql, .. } => format!("{sql} of {url}"),
        ProbeKind::Log { system, pattern } => format!("{pattern} in the log of {system}"),
    };
    let of = match &probe.of {
        Some(of) => format!(" of each copy of {of}"),
        None => String::new(),
    };
    let every = write_duration(probe.every);
    let within = write_duration(probe.within);
    format!("{}: {what}{of}, every {every}, within {within}", probe.name)
}

fn explain_traffic(load: &StepLoad) -> String {
    let name = &load.load;
    match &load.traffic {
        Traffic::Own => format!("under {name}"),
        Traffic::Arrivals(arrivals) => format!("under {name} at {}", arrivals.describe()),
        Traffic::ShareOfKnee { share, search } => {
            format!(
                "under {name} at {} of the highest rate that holds in {search:?}",
                show_share(*share)
            )
        }
    }
}

fn explain_search(search: &Search) -> String {
    format!(
        "search for the highest rate of {} with {}, from {}, {} each",
        search.load,
        search.good,
        show_rate(search.from),
        write_duration(search.each)
    )
}

fn explain_step(plan: &Plan, step: &Step) -> String {
    let under: Vec<String> = step.loads.iter().map(explain_traffic).collect();
    let mut parts = Vec::new();
    parts.extend(step.search.as_ref().map(explain_search));
    parts.extend(step.make.as_ref().map(explain_make));
    parts.extend(
        step.hold
            .map(|time| format!("hold for {}", write_duration(time))),
    );
    let begin = match step.hold {
        Some(_) => "when that is over",
        None => "at once",
    };
    let faults = step.faults.iter();
    parts.extend(faults.map(|fault| explain_fault(plan, fault, begin)));
    parts.extend(step.signals.iter().map(ToString::to_string));
    parts.extend(step.calls.iter().map(|call| {
        let within = write_duration(call.within);
        let (request, target) = (&call.request, &call.target);
        format!(
            "ask {} {target}{}, within {within}",
            request.method, request.path
        )
    }));
    parts.extend(step.run.as_ref().map(|run| {
        let within = write_duration(step.run_within);
        format!("run {run}, within {within}")
    }));
    parts.extend(step.wait.as_ref().map(|wait| {
        let steady = match wait.steady.is_zero() {
            true => String::new(),
            false => format!(" for {}", write_duration(wait.steady)),
        };
        let at_most = write_duration(wait.at_most);
        format!("wait until {}{steady}, at most {at_most}", wait.until.text)
    }));
    let always = step.always.iter();
    parts.extend(always.map(|always| format!("all the time {}", always.text)));
    let under = match under.is_empty() {
        true => String::new(),
        false => format!(", {}", under.join(", ")),
    };
    format!("{}: {}{under}", step.name, parts.join("; then "))
}

fn explain_fault(plan: &Plan, fault: &Fault, begin: &str) -> String {
    let at = match fault.at {
        Some(at) => format!("{} after the step began", write_duration(at)),
        None => begin.to_owned(),
    };
    let length = match (fault.length, &fault.through) {
        (Some(length), _) => format!(" for {}", write_duration(length)),
        (None, Some(through)) => format!(" until {through:?} ends"),
        (None, None) if fault.keep => " for good".to_owned(),
        (None, None) => " until the step ends".to_owned(),
    };
    let by = match &fault.kind {
        FaultKind::Custom { does, undo, .. } => format!(", by {does}, undone by {undo}"),
        FaultKind::Network { connections, .. } => explain_ways(plan, connections),
        FaultKind::Process { .. } | FaultKind::Silence { .. } => String::new(),
    };
    let every = match fault.every {
        None => String::new(),
        Some(Every::Fixed(gap)) => format!(", and again {} after each", write_duration(gap)),
        Some(Every::Exponential(gap)) => {
            format!(", and again about {} after each", write_duration(gap))
        }
    };
    let until = match (fault.every, &fault.through) {
        (Some(_), Some(through)) => format!(", until {through:?} ends"),
        _ => String::new(),
    };
    format!("{} {at}{length}{every}{until}{by}", fault.kind)
}

/// By what means the faults of connections are made: for each way, of which, if there are several.
fn explain_ways(plan: &Plan, connections: &[Connection]) -> String {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for connection in connections {
        let by = match plan.way(connection) {
            FaultMechanism::Rules => "by rules of the kernel".to_owned(),
            FaultMechanism::Proxy { needed_by: None } => "by a proxy".to_owned(),
            FaultMechanism::Proxy {
                needed_by: Some(word),
            } => format!("by a proxy, as {word} is beyond the kernel's rules"),
        };
        match ways.iter_mut().find(|(known, _)| *known == by) {
            Some((_, of)) => of.push(connection.to_string()),
            None => ways.push((by, vec![connection.to_string()])),
        }
    }
    match ways.as_slice() {
        [(by, _)] => format!(", {by}"),
        several => several
            .iter()
            .map(|(by, of)| format!(", {} {by}", of.join(" and ")))
            .collect(),
    }
}

fn explain_make(make: &Make) -> String {
    let rate = match make.rate {
        Rate::Max => "as fast as possible".to_owned(),
        Rate::PerSecond(rate) => format!("at {}", show_rate(rate)),
    };
    let count = match make.later.get("count") {
        Some(kept) => kept.to_string(),
        None => make.count.to_string(),
    };
    format!(
        "make {count} {} {rate}, {} in flight",
        make.what, make.in_flight
    )
}

/// A command line, with quotes around what would otherwise be several words.
fn words_of(words: &[Template]) -> String {
    let quoted = |word: &Template| {
        let text = word.to_string();
        match text.is_empty() || text.contains(char::is_whitespace) {
            true => format!("'{text}'"),
            false => text,
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
