//! Checks the names and units of an expression against the file.

use std::collections::BTreeMap;

use document::{Problem, listed};

use super::faults::{self, FaultNumber};
use super::growth;
use super::lexer::Fault;
use super::loads::{self, LoadUse};
use super::metric::{WATCHES, watch_name};
use super::parser::{Argument, Of, Raw, Subject, Tree, Word, parse, parse_metric};
use super::probes::{self, ProbeUse};
use super::quantity::quantity;
use super::{Comparison, Dimension, Expr, Metric, Node, Op, Stat};
use crate::plan::Watch;
use crate::text::Text;
use units::nearest;

/// Names that an expression may use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Kinds of entity with their states.
    pub(crate) entities: BTreeMap<String, Vec<String>>,
    /// Lifecycles with their points in order; without any of one that is wrong itself.
    pub(crate) lifecycles: BTreeMap<String, Vec<String>>,
    pub(crate) loops: Vec<String>,
    /// Systems and fleets with what is watched of each.
    pub(crate) systems: BTreeMap<String, Vec<Watch>>,
    pub(crate) steps: Vec<String>,
    /// Loads, and probes that are open loads.
    pub(crate) loads: BTreeMap<String, LoadUse>,
    /// Other probes.
    pub(crate) probes: BTreeMap<String, ProbeUse>,
    /// Steps that search for a knee.
    pub(crate) searches: Vec<String>,
    /// Steps that break something.
    pub(crate) faults: Vec<String>,
    /// Values that steps keep.
    pub(crate) kept: Vec<String>,
}

impl Names {
    /// Is it a kind of entity or a lifecycle?
    pub(super) fn knows(&self, name: &str) -> bool {
        self.entities.contains_key(name) || self.lifecycles.contains_key(name)
    }
}

/// Where an expression stands, which decides what it may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use<'n> {
    /// `wait.until` of this step: what drivers count and loads see now.
    Until(&'n str),
    /// `while.good` of a search that varies this load.
    Good(&'n str),
    /// `expect.that`: what was measured over the whole run.
    That,
}

/// Names that begin metrics of other kinds.
pub(crate) const RESERVED: [&str; 7] = ["loop", "system", "probe", "knee", "kept", "and", "or"];

/// What a lifecycle tells besides its intervals.
const OF_LIFECYCLE: [&str; 3] = ["complete", "negative", "entities"];

/// Parses and checks an expression; adds a problem for each comparison that is wrong.
pub(crate) fn compile(
    text: &Text,
    place: Use<'_>,
    names: &Names,
    problems: &mut Vec<Problem>,
) -> Option<Expr> {
    let mut faults = Vec::new();
    let root = match parse(text.as_str()) {
        Ok(tree) => node(tree, place, names, &mut faults),
        Err(fault) => {
            faults.push(fault);
            None
        }
    };
    problems.extend(faults.into_iter().map(|fault| problem(text, fault)));
    Some(Expr {
        text: text.as_str().to_owned(),
        root: root?,
    })
}

/// Parses and checks a metric that stands alone and is measured over the whole run; adds a problem
/// if it is wrong.
pub(crate) fn compile_metric(
    text: &Text,
    names: &Names,
    problems: &mut Vec<Problem>,
) -> Option<Metric> {
    let found = parse_metric(text.as_str()).and_then(|raw| metric(&raw, Use::That, names));
    found
        .map_err(|fault| problems.push(problem(text, fault)))
        .ok()
}

fn problem(text: &Text, fault: Fault) -> Problem {
    let mut problem = Problem::new(text.span(fault.at), fault.message);
    if let Some(help) = fault.help {
        problem = problem.help(help);
    }
    problem.suggest_if(fault.suggestion)
}

fn node(tree: Tree, place: Use<'_>, names: &Names, faults: &mut Vec<Fault>) -> Option<Node> {
    let mut parts = |trees: Vec<Tree>| {
        // Every part is checked, so that every fault is found.
        let nodes: Vec<_> = trees
            .into_iter()
            .map(|tree| node(tree, place, names, faults))
            .collect();
        nodes.into_iter().collect::<Option<Vec<Node>>>()
    };
    match tree {
        Tree::All(trees) => parts(trees).map(Node::All),
        Tree::Any(trees) => parts(trees).map(Node::Any),
        Tree::Compare(raw) => match comparison(&raw, place, names) {
            Ok(comparison) => Some(Node::Compare(comparison)),
            Err(fault) => {
                faults.push(fault);
                None
            }
        },
    }
}

fn comparison(raw: &Raw, place: Use<'_>, names: &Names) -> Result<Comparison, Fault> {
    if raw.is_text {
        known_step(raw, names)?;
        let path = match &raw.subject {
            Subject::Path { names, until: None } => Some(names.as_slice()),
            _ => None,
        };
        return probes::text(raw, path, place, names);
    }
    let metric = metric(raw, place, names)?;
    loads::share_of(raw, &metric)?;
    if let Some(Of::Metric(other)) = &raw.of {
        return relative(raw, metric, other, place, names);
    }
    let quantity = quantity(&raw.quantity, &metric)?;
    let exact = matches!(raw.op, Op::Equal | Op::NotEqual);
    if exact && metric.dimension() == Dimension::Count && quantity.fract() != 0.0 {
        let message = format!("{metric} is a whole number and never {}", raw.quantity.text);
        return Err(Fault::new(raw.quantity.at.clone(), message));
    }
    Ok(Comparison {
        metric,
        op: raw.op,
        quantity,
        of: None,
        written: raw.quantity.text.clone(),
    })
}

/// `'churn': traffic p99 < 110% of 'soak': traffic p99`
fn relative(
    raw: &Raw,
    left: Metric,
    other: &Raw,
    place: Use<'_>,
    names: &Names,
) -> Result<Comparison, Fault> {
    let at = raw.quantity.at.clone();
    if place != Use::That {
        return Err(Fault::new(
            at,
            "one metric is compared with another at the end of a run only",
        )
        .help("compare it with a quantity"));
    }
    let of = metric(other, place, names)?;
    // A number that was kept may count something.
    let of_kind = |metric: &Metric| match metric.dimension() {
        Dimension::Number => Dimension::Count,
        dimension => dimension,
    };
    if of_kind(&left) != of_kind(&of) {
        let message = format!("{left} and {of} have different units");
        return Err(Fault::new(at, message));
    }
    let share = raw.quantity.text.strip_suffix('%');
    let share = share.and_then(|number| units::parse_number(number.trim_end()).ok());
    let Some(share) = share else {
        let message = format!(
            "expected a share such as 110%, found \"{}\"",
            raw.quantity.text
        );
        return Err(Fault::new(at, message));
    };
    Ok(Comparison {
        metric: left,
        op: raw.op,
        quantity: share / 100.0,
        of: Some(of),
        written: raw.quantity.text.clone(),
    })
}

fn metric(raw: &Raw, place: Use<'_>, names: &Names) -> Result<Metric, Fault> {
    let is_until = matches!(place, Use::Until(_));
    known_step(raw, names)?;
    let path = match &raw.subject {
        Subject::Call { name, argument } => {
            return call(raw, name, argument, place, names);
        }
        Subject::Path { names: path, until } => (path, until),
    };
    let (path, until) = path;
    let words: Vec<&str> = path.iter().map(|word| word.text.as_str()).collect();
    if let (Some((name, rest)), None) = (probes::named(path, names), until) {
        return probes::metric(raw, name, rest, place, names);
    }
    match words.as_slice() {
        ["knee", _] if until.is_none() => return loads::knee(raw, &path[1], place, names),
        ["knee", ..] => return Err(form(raw, "knee.rate")),
        ["probe", ..] => return loads::probe(raw, path, place, names),
        [name]
            if !names.loads.is_empty()
                && (names.loads.contains_key(*name) || !raw.stats.is_empty()) =>
        {
            return loads::load(raw, &path[0], place, names);
        }
        [name, quantity] if names.loads.contains_key(*name) && !names.knows(name) => {
            let message = format!("a dot does not lead to what {name} measures");
            let mut fault = Fault::new(raw.subject.at(), message);
            fault.suggestion = Some(format!("{name} {quantity}"));
            return Err(fault);
        }
        _ => not_of_a_step(raw)?,
    }
    if let Use::Good(load) = place {
        let message = "a search is good by what its own requests tell";
        return Err(Fault::new(raw.subject.at(), message)
            .help(format!("write for instance \"{load} p99 < 20ms\"")));
    }
    match words.as_slice() {
        ["loop" | "system" | "kept", ..] if is_until => Err(judged_only(raw)),
        ["kept", _] if until.is_none() => kept(raw, &path[1], names),
        ["kept", ..] => Err(form(raw, "kept.NAME")),
        ["loop", _] if until.is_none() => turns(raw, &path[1], names),
        ["system", _, _] if until.is_none() => process(raw, &path[1], &path[2], names),
        ["loop", ..] => Err(form(raw, "loop.NAME p99")),
        ["system", ..] => Err(form(raw, "system.NAME.rss max")),
        [_, _] if is_until => live(raw, &path[0], &path[1], until, names),
        [_, _] => judged(raw, &path[0], &path[1], until.as_ref(), names),
        _ if is_until => Err(form(raw, "task.resolved")),
        _ => Err(form(raw, "task.complete or task.desired..resolved p99")),
    }
}

fn known_step(raw: &Raw, names: &Names) -> Result<(), Fault> {
    match &raw.step {
        Some(step) if !names.steps.contains(&step.text) => {
            let steps = names.steps.iter().map(String::as_str);
            Err(unknown(step, "step", "steps", steps))
        }
        _ => Ok(()),
    }
}

/// Only loads, probes and searches are measured step by step.
fn not_of_a_step(raw: &Raw) -> Result<(), Fault> {
    match &raw.step {
        None => Ok(()),
        Some(step) => Err(Fault::new(
            step.at.clone(),
            "this is measured over the whole run, not step by step",
        )
        .help("metrics of loads, probes and searches can be those of a step")),
    }
}

fn call(
    raw: &Raw,
    name: &Word,
    argument: &Argument,
    place: Use<'_>,
    names: &Names,
) -> Result<Metric, Fault> {
    let of_faults = FaultNumber::WORDS;
    if let Some((_, number)) = of_faults.iter().find(|(word, _)| *word == name.text) {
        return faults::number(raw, *number, argument, place, names);
    }
    if name.text == growth::WORD {
        return growth::growth(raw, argument, place, names);
    }
    not_of_a_step(raw)?;
    match (name.text.as_str(), argument) {
        ("duration", _) if place != Use::That => Err(judged_only(raw)),
        ("duration", Argument::Path(_)) => {
            let message = "expected the name of a step in quotes: duration('NAME')";
            Err(Fault::new(raw.subject.at(), message))
        }
        ("duration", Argument::Quoted(argument)) => {
            no_stat(raw)?;
            if names.steps.contains(&argument.text) {
                return Ok(Metric::StepDuration {
                    step: argument.text.clone(),
                });
            }
            let steps = names.steps.iter().map(String::as_str);
            Err(unknown(argument, "step", "steps", steps))
        }
        _ => {
            let known = of_faults.map(|(word, _)| word);
            let known = known.into_iter().chain(["duration", growth::WORD]);
            Err(unknown(name, "function", "functions", known))
        }
    }
}

/// `task.resolved`, counted by a driver.
fn live(
    raw: &Raw,
    what: &Word,
    state: &Word,
    until: &Option<Word>,
    names: &Names,
) -> Result<Metric, Fault> {
    let states = names.entities.get(&what.text);
    let is_judged = until.is_some() || OF_LIFECYCLE.contains(&state.text.as_str());
    let knows_state = states.is_some_and(|states| states.contains(&state.text));
    if is_judged && !knows_state && (names.lifecycles.contains_key(&what.text) || states.is_some())
    {
        return Err(judged_only(raw));
    }
    let Some(states) = states else {
        let known = names.entities.keys().chain(names.probes.keys());
        let all = match names.probes.is_empty() {
            true => "kinds of entity that the drivers count",
            false => "kinds of entity that the drivers count, and probes",
        };
        let known = known.map(String::as_str);
        return Err(unknown(what, "kind of entity", all, known));
    };
    if !knows_state || until.is_some() {
        let what = format!("states of {}", what.text);
        return Err(unknown(
            state,
            "state",
            &what,
            states.iter().map(String::as_str),
        ));
    }
    no_stat(raw)?;
    Ok(Metric::Entities {
        what: what.text.clone(),
        state: state.text.clone(),
    })
}

/// `task.complete` or `task.desired..resolved p99`, mined from logs.
fn judged(
    raw: &Raw,
    name: &Word,
    first: &Word,
    until: Option<&Word>,
    names: &Names,
) -> Result<Metric, Fault> {
    let lifecycle = name.text.clone();
    let points = names.lifecycles.get(&lifecycle);
    let live_states = names.entities.get(&lifecycle);
    let is_live = live_states.is_some_and(|states| states.contains(&first.text));
    if until.is_none() && is_live && !OF_LIFECYCLE.contains(&first.text.as_str()) {
        let message = format!(
            "{lifecycle}.{} counts entities while a run goes on; only `until` can wait for it",
            first.text
        );
        let help = match points {
            Some(_) => format!(
                "an expectation judges the logs: {lifecycle}.complete, {lifecycle}.FROM..TO p99"
            ),
            None => {
                "an expectation judges what the logs showed; it needs a [[lifecycle]]".to_owned()
            }
        };
        return Err(Fault::new(raw.subject.at(), message).help(help));
    }
    let Some(points) = points else {
        let known = names
            .lifecycles
            .keys()
            .chain(names.loads.keys())
            .chain(names.probes.keys())
            .map(String::as_str)
            .chain(["loop", "system"]);
        return Err(unknown(
            name,
            "lifecycle",
            "an expectation begins with one of",
            known,
        ));
    };
    let Some(to) = until else {
        let metric = match first.text.as_str() {
            "complete" => Metric::Complete { lifecycle },
            "negative" => Metric::Negative { lifecycle },
            "entities" => Metric::Rows { lifecycle },
            _ if points.contains(&first.text) => {
                let message = format!("{lifecycle}.{} is a point, not an interval", first.text);
                return Err(Fault::new(raw.subject.at(), message).help(format!(
                    "an interval has two points: {lifecycle}.{}..TO p99",
                    first.text
                )));
            }
            _ => {
                let what = format!("a lifecycle tells {lifecycle}.FROM..TO and");
                return Err(unknown(first, "measure", &what, OF_LIFECYCLE));
            }
        };
        no_stat(raw)?;
        return Ok(metric);
    };
    let position = |point: &Word| {
        points
            .iter()
            .position(|known| *known == point.text)
            .ok_or_else(|| {
                let what = format!("points of {lifecycle}");
                unknown(point, "point", &what, points.iter().map(String::as_str))
            })
    };
    // Of one that is wrong itself any point may be right.
    if !points.is_empty() && position(first)? >= position(to)? {
        let message = format!(
            "{} does not come before {} in {lifecycle}",
            first.text, to.text
        );
        return Err(Fault::new(first.at.start..to.at.end, message)
            .help(format!("the points in order: {}", listed(points))));
    }
    let stat = stat(raw, &Stat::OF_INTERVALS)?;
    Ok(Metric::Interval {
        lifecycle,
        from: first.text.clone(),
        to: to.text.clone(),
        stat,
    })
}

fn kept(raw: &Raw, name: &Word, names: &Names) -> Result<Metric, Fault> {
    if !names.kept.contains(&name.text) {
        let known = names.kept.iter().map(String::as_str);
        return Err(unknown(name, "kept value", "values that steps keep", known));
    }
    no_stat(raw)?;
    Ok(Metric::Kept {
        name: name.text.clone(),
    })
}

fn turns(raw: &Raw, name: &Word, names: &Names) -> Result<Metric, Fault> {
    if !names.loops.contains(&name.text) {
        return Err(unknown(
            name,
            "loop",
            "loops",
            names.loops.iter().map(String::as_str),
        ));
    }
    Ok(Metric::Loop {
        name: name.text.clone(),
        stat: stat(raw, &Stat::OF_LOOPS)?,
    })
}

fn process(raw: &Raw, system: &Word, quantity: &Word, names: &Names) -> Result<Metric, Fault> {
    let quantity = watched(system, quantity, names)?;
    let stat = stat(raw, &Stat::OF_SAMPLES)?;
    Ok(Metric::Process {
        system: system.text.clone(),
        quantity,
        stat,
    })
}

/// A quantity of a system, which must be watched.
pub(super) fn watched(system: &Word, quantity: &Word, names: &Names) -> Result<Watch, Fault> {
    let Some(watched) = names.systems.get(&system.text) else {
        let known = names.systems.keys().map(String::as_str);
        return Err(unknown(system, "system", "systems", known));
    };
    let Some(watch) = WATCHES
        .into_iter()
        .find(|watch| watch_name(*watch) == quantity.text)
    else {
        let known = WATCHES.map(watch_name);
        return Err(unknown(
            quantity,
            "quantity",
            "quantities of a system",
            known,
        ));
    };
    if !watched.contains(&watch) {
        let message = format!("{} of {} is not watched", quantity.text, system.text);
        return Err(Fault::new(quantity.at.clone(), message)
            .help(format!("add \"{}\" to its watch list", quantity.text)));
    }
    Ok(watch)
}

/// The statistic of a comparison, which must be one of `known`.
pub(super) fn stat(raw: &Raw, known: &[Stat]) -> Result<Stat, Fault> {
    let names: Vec<&str> = known.iter().map(|stat| stat.name()).collect();
    let Some(word) = raw.stats.first() else {
        return Err(Fault::new(raw.subject.at(), "which statistic is meant?")
            .help(format!("put one after the metric: {}", listed(&names))));
    };
    if let Some(further) = raw.stats.get(1) {
        let message = format!("expected a comparison, found \"{}\"", further.text);
        return Err(Fault::new(further.at.clone(), message));
    }
    known
        .iter()
        .copied()
        .find(|stat| stat.name() == word.text)
        .ok_or_else(|| {
            // The nearest name is often another percentile, which is not meant.
            Fault::new(
                word.at.clone(),
                format!("unknown statistic \"{}\"", word.text),
            )
            .help(format!("statistics: {}", listed(&names)))
        })
}

pub(super) fn no_stat(raw: &Raw) -> Result<(), Fault> {
    match raw.stats.first() {
        None => Ok(()),
        Some(word) => {
            let message = format!(
                "this metric is a single value and takes no \"{}\"",
                word.text
            );
            Err(Fault::new(word.at.clone(), message))
        }
    }
}

pub(super) fn judged_only(raw: &Raw) -> Fault {
    let message = "this is known only at the end of a run, not while it goes on";
    Fault::new(raw.subject.at(), message)
        .help("write KIND.STATE or LOAD p99 here, and put this metric into an [[expect]]")
}

pub(super) fn form(raw: &Raw, example: &str) -> Fault {
    Fault::new(
        raw.subject.at(),
        format!("expected a metric of the form {example}"),
    )
}

pub(super) fn unknown<'n>(
    word: &Word,
    what: &str,
    all: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Fault {
    let known: Vec<&str> = known.into_iter().collect();
    let mut fault = Fault::new(word.at.clone(), format!("unknown {what} \"{}\"", word.text));
    match nearest(&word.text, known.iter().copied()) {
        Some(name) => fault.suggestion = Some(name.to_owned()),
        None if known.is_empty() => fault.help = Some(format!("the file has no {what}")),
        None => fault.help = Some(format!("{all}: {}", listed(&known))),
    }
    fault
}
