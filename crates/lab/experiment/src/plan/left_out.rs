//! What a plan leaves out on a machine that lacks a program: systems that name it in `needs`, and
//! whatever cannot be without them.

use std::collections::BTreeSet;

use super::{
    Act, CopySelector, Driver, DriverKind, FaultKind, Plan, Probe, ProbeKind, Step, Template,
    Traffic,
};
use crate::expr::{Affected, Expr, Growing, Metric};

/// Names of what is not there.
#[derive(Default)]
struct MissingNames {
    systems: BTreeSet<String>,
    loads: BTreeSet<String>,
    probes: BTreeSet<String>,
    /// Kinds of entity that nobody makes.
    entities: BTreeSet<String>,
    steps: BTreeSet<String>,
    /// Values that nobody keeps.
    kept: BTreeSet<String>,
}

/// What a machine lacks of a plan, and what goes with that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// A line for people for each program that is missing.
    pub lines: Vec<String>,
    /// Each expectation that is not judged, and the program that it would need.
    pub expects: Vec<(String, String)>,
    /// The programs that are missing.
    pub programs: Vec<String>,
}

impl LeftOut {
    /// Why a plan that went through [`Plan::leave_out`] can show nothing: all that it expects is
    /// left out, or all that it does while it expects nothing. `None`: something is left of it.
    #[must_use]
    pub fn leaves_nothing(&self, plan: &Plan) -> Option<String> {
        let what = match (plan.expects.is_empty(), self.expects.is_empty()) {
            (true, false) => "every expectation",
            (true, true) if plan.steps.is_empty() && !self.programs.is_empty() => "every step",
            _ => return None,
        };
        let (programs, are) = (
            self.programs.join(", "),
            if self.programs.len() == 1 {
                "is"
            } else {
                "are"
            },
        );
        Some(format!(
            "{what} is left out: {programs} {are} not installed"
        ))
    }
}

impl Plan {
    /// Leaves out the systems whose program is not there, those that come after them or are told
    /// their address, what asks any of them, the steps that use any of that, and the expectations
    /// about it. Says what that is; of a plan that has all it needs, nothing.
    pub fn leave_out(&mut self, is_there: impl Fn(&str) -> bool) -> LeftOut {
        let mut left_out = LeftOut::default();
        let programs = &mut left_out.programs;
        for needs in self
            .systems
            .iter()
            .filter_map(|system| system.needs.as_ref())
        {
            if !programs.contains(needs) && !is_there(needs) {
                programs.push(needs.clone());
            }
        }
        for program in programs.iter() {
            let (line, expects) = self.leave_out_without(program);
            left_out.lines.push(line);
            let named = expects.into_iter().map(|that| (that, program.clone()));
            left_out.expects.extend(named);
        }
        left_out
    }

    /// A line about what goes without this program, and the expectations among that.
    fn leave_out_without(&mut self, program: &str) -> (String, Vec<String>) {
        let mut gone = MissingNames::default();
        loop {
            let before = gone.systems.len();
            let systems = self.systems.iter().filter(|system| {
                let mut others = system
                    .after
                    .iter()
                    .cloned()
                    .chain(system.referenced_systems());
                system.needs.as_deref() == Some(program)
                    || others.any(|other| gone.systems.contains(&other))
            });
            let found: Vec<String> = systems.map(|system| system.name.clone()).collect();
            gone.systems.extend(found);
            if gone.systems.len() == before {
                break;
            }
        }
        self.systems
            .retain(|system| !gone.systems.contains(&system.name));
        let drivers = self.drivers.extract_if(.., |driver| gone.has(driver));
        let entities = drivers.flat_map(|driver| driver.entities.into_keys());
        let entities: BTreeSet<String> = entities.collect();
        let loads = self.loads.extract_if(.., |load| {
            gone.is_in(&load.target) || load.connect_to.iter().any(|place| gone.is_in(place))
        });
        let loads: BTreeSet<String> = loads.map(|load| load.name).collect();
        let probes = self.probes.extract_if(.., |probe| gone.is_asked_by(probe));
        let probes: BTreeSet<String> = probes.map(|probe| probe.name).collect();
        gone = MissingNames {
            entities,
            loads,
            probes,
            ..gone
        };
        let all: Vec<String> = self.steps.iter().map(|step| step.name.clone()).collect();
        let mut steps: Vec<String> = Vec::new();
        self.steps.retain(|step| {
            let goes = gone.is_used_by(step);
            if goes {
                gone.steps.insert(step.name.clone());
                gone.kept.extend(step.keeps().map(str::to_owned));
                steps.push(step.name.clone());
            }
            !goes
        });
        for step in &mut self.steps {
            gone.end_before(step, &all);
        }
        let expects = self
            .expects
            .extract_if(.., |expect| gone.is_judged_by(&expect.that));
        let expects: Vec<String> = expects.map(|expect| expect.that.text).collect();
        let systems: Vec<String> = gone.systems.into_iter().collect();
        let mut line = format!("{program} is not installed: without {}", systems.join(", "));
        if !steps.is_empty() {
            line += &format!("; left out: {}", steps.join(", "));
        }
        if !expects.is_empty() {
            let (plural, are) = if expects.len() == 1 {
                ("", "is")
            } else {
                ("s", "are")
            };
            let count = expects.len();
            line += &format!("; {count} expectation{plural} about that {are} not judged");
        }
        (line, expects)
    }
}

impl MissingNames {
    fn is_in(&self, template: &Template) -> bool {
        let mut systems = template.references().filter_map(|one| one.system());
        systems.any(|system| self.systems.contains(system))
    }

    fn has(&self, driver: &Driver) -> bool {
        let system = driver.talk_to.as_ref();
        let words = match &driver.kind {
            DriverKind::Program(words) => words.as_slice(),
            DriverKind::Builtin { .. } => &[],
        };
        let remote = driver.remote.iter().map(|remote| &remote.address);
        words.iter().chain(remote).any(|word| self.is_in(word))
            || system.is_some_and(|system| self.systems.contains(system))
    }

    /// Has faults that were to go on through a step that is gone end with the last one before it
    /// that is left, of `all` in order.
    fn end_before(&self, step: &mut Step, all: &[String]) {
        let place = |name: &String| all.iter().position(|one| one == name);
        let own = place(&step.name);
        for fault in &mut step.faults {
            let through = fault.through.as_ref();
            let Some(through) = through.filter(|through| self.steps.contains(*through)) else {
                continue;
            };
            let between = own.zip(place(through));
            let between = between.and_then(|(own, last)| all.get(own + 1..last));
            let mut left = between.unwrap_or_default().iter();
            fault.through = left.rfind(|name| !self.steps.contains(*name)).cloned();
        }
    }

    fn is_picked_by(&self, who: &CopySelector) -> bool {
        matches!(who, CopySelector::Probe { probe, .. } if self.probes.contains(probe))
    }

    fn is_asked_by(&self, probe: &Probe) -> bool {
        let is_of = |system: &String| self.systems.contains(system);
        probe.of.as_ref().is_some_and(is_of)
            || match &probe.kind {
                ProbeKind::Http { url, .. }
                | ProbeKind::Prom { url, .. }
                | ProbeKind::Postgres { url, .. } => self.is_in(url),
                ProbeKind::Tcp { address, .. } | ProbeKind::Grpc { address, .. } => {
                    self.is_in(address)
                }
                ProbeKind::Command { program, args, .. } => {
                    self.is_in(program) || args.iter().any(|word| self.is_in(word))
                }
                ProbeKind::Log { system, .. } => is_of(system),
            }
    }

    fn is_used_by(&self, step: &Step) -> bool {
        let is_gone = |system: &String| self.systems.contains(system);
        let loads = step.loads.iter().any(|own| {
            let is_after = matches!(&own.traffic, Traffic::ShareOfKnee { search, .. }
                if self.steps.contains(search));
            is_after || self.loads.contains(&own.load)
        });
        let searches = step
            .search
            .iter()
            .any(|search| self.loads.contains(&search.load));
        let makes = step
            .make
            .iter()
            .any(|make| self.entities.contains(&make.what));
        let signals = step
            .signals
            .iter()
            .any(|signal| is_gone(&signal.system) || self.is_picked_by(&signal.who));
        let uses = step.uses().any(|name| self.kept.contains(name));
        let requests = step.requests().any(|call| self.is_in(&call.target));
        let runs = step.run.iter().any(|command| self.is_in(command));
        let faults = step.faults.iter().any(|fault| match &fault.kind {
            FaultKind::Process { system, who, .. } => is_gone(system) || self.is_picked_by(who),
            FaultKind::Silence { fleet, .. } => is_gone(fleet),
            FaultKind::Network { connections, .. } => connections.iter().any(|one| {
                is_gone(&one.to) || is_gone(&one.from) || self.loads.contains(&one.from)
            }),
            FaultKind::Custom { does, undo, .. } => [does, undo]
                .into_iter()
                .any(|act| matches!(act, Act::Command(command) if self.is_in(command))),
        });
        let waits = step.wait.iter().map(|wait| &wait.until);
        let judges = waits
            .chain(&step.always)
            .any(|expr| self.is_judged_by(expr));
        loads || searches || makes || signals || uses || requests || runs || faults || judges
    }

    /// Whether an expression is about something that is gone.
    fn is_judged_by(&self, expr: &Expr) -> bool {
        let step =
            |step: &Option<String>| step.as_ref().is_some_and(|step| self.steps.contains(step));
        let is_gone = |metric: &Metric| match metric {
            Metric::Entities { what, .. } => self.entities.contains(what),
            Metric::Process { system, .. } => self.systems.contains(system),
            Metric::Load { step: of, load, .. } => step(of) || self.loads.contains(load),
            Metric::Probe {
                step: of, probe, ..
            } => step(of) || self.probes.contains(probe),
            Metric::Knee { step: of, .. } => step(of),
            Metric::StepDuration { step } => self.steps.contains(step),
            Metric::Growth { step, of } => {
                self.steps.contains(step)
                    || match of {
                        Growing::Process { system, .. } => self.systems.contains(system),
                        Growing::Latency(probe) | Growing::Value(probe) => {
                            self.probes.contains(probe)
                        }
                        Growing::Loop(_) => false,
                    }
            }
            Metric::Kept { name } => self.kept.contains(name),
            Metric::Fault {
                step: of, of: what, ..
            } => {
                step(of)
                    || match what {
                        Affected::Load(load) => self.loads.contains(load),
                        Affected::Entities { what, .. } => self.entities.contains(what),
                        Affected::Probe { probe, .. } => self.probes.contains(probe),
                    }
            }
            _ => false,
        };
        expr.metrics().any(is_gone)
    }
}
