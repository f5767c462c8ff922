//! From the text of a file to a plan, or to everything that is wrong with it.

mod always;
mod constants;
mod drivers;
mod entries;
mod faults;
mod fields;
mod fleets;
mod gates;
mod inputs;
mod lifecycles;
mod loads;
mod network;
mod order;
mod probes;
mod process;
mod settings;
mod signals;
mod steps;
mod sweep;
mod systems;
mod values;

use document::{Diagnostic, Lines, Problem, Source};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::catalogue::Catalogue;
use crate::expr::{Names, WATCHES};
use crate::names::Scope;
use crate::plan::{Network, PageAct, Plan};
use drivers::Makers;
use entries::{NamesInUse, Naming, named, tables};
use fields::{Field, Fields, Value};
use values::{Reader, all};

/// The version of the file format that is read.
const VERSION: u64 = 1;
/// Largest file, in bytes.
const LARGEST: usize = 1024 * 1024;
/// Most problems that are told at once.
const MOST_PROBLEMS: usize = 100;
/// Most systems and fleets, each.
const MOST_SYSTEMS: usize = 1_000;
/// Most tables of any other kind.
const MOST_TABLES: usize = 1_000;
/// Seed when a file does not say.
const SEED: u64 = 1;

/// Checks an experiment file and makes a plan of it.
///
/// `overrides` replace constants of `[let]`, as `--set name=value` does; of several
/// for one name the last wins. The same file, overrides and catalogue give the same
/// plan.
///
/// # Errors
/// All that is wrong, in order of place, 100 problems at most; those of the overrides
/// come first. Errors of TOML's own syntax hide all others.
pub fn check(
    source: &Source,
    overrides: &[(String, String)],
    catalogue: &Catalogue,
) -> Result<Plan, Vec<Diagnostic>> {
    let lines = Lines::of(&source.name, &source.text);
    if source.text.len() > LARGEST {
        let message = format!(
            "the file has {} bytes, {LARGEST} at most",
            source.text.len()
        );
        return Err(vec![lines.diagnostic(Problem::new(0..0, message))]);
    }
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        let problem = |error: toml::de::Error| {
            Problem::new(
                error.span().unwrap_or(0..0),
                format!("not TOML: {}", error.message()),
            )
        };
        return Err(in_order(errors.into_iter().map(problem).collect(), &lines));
    }
    let root = Spanned::new(0..0, DeValue::Table(table.into_inner()));
    let mut reader = Reader {
        file: &source.text,
        scope: Scope::default(),
        problems: Vec::new(),
        may_mount: catalogue.may_mount,
        own_network: catalogue.own_network,
    };
    let (plan, mut diagnostics) = read(&mut reader, &root, overrides, catalogue, &lines);
    diagnostics.extend(in_order(reader.problems, &lines));
    match plan {
        Some(plan) if diagnostics.is_empty() => Ok(plan),
        _ => Err(diagnostics),
    }
}

fn in_order(mut problems: Vec<Problem>, lines: &Lines<'_>) -> Vec<Diagnostic> {
    problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    // One mistake in a constant's use may be met twice.
    problems.dedup();
    problems.truncate(MOST_PROBLEMS);
    problems
        .into_iter()
        .map(|problem| lines.diagnostic(problem))
        .collect()
}

/// Reads the whole file. The diagnostics are those of the overrides; problems of the
/// file gather in the reader.
fn read(
    reader: &mut Reader<'_>,
    root: &Value<'_>,
    overrides: &[(String, String)],
    catalogue: &Catalogue,
    lines: &Lines<'_>,
) -> (Option<Plan>, Vec<Diagnostic>) {
    let Some(root) = Fields::open_any(root, "the file", reader) else {
        return (None, Vec::new());
    };
    if !version(reader, &root) {
        return (None, Vec::new());
    }
    let diagnostics = constants::read(reader, &root, overrides);
    let sweep = sweep::sweep(reader, &root, overrides);
    let plan = plan(reader, &root, catalogue, lines).map(|plan| Plan { sweep, ..plan });
    (plan, diagnostics)
}

/// Checks the version first: a file of another version would be full of unknown keys.
fn version(reader: &mut Reader<'_>, root: &Fields<'_>) -> bool {
    let Some(field) = root.require("lab", "1, the version of the format", reader) else {
        return true;
    };
    let found = match field.value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    if found != Some(VERSION) {
        let problem = Problem::new(
            field.span(),
            format!("this version reads lab = {VERSION} only"),
        );
        reader.problem(problem);
    }
    found == Some(VERSION)
}

/// Keys of the file itself.
const KEYS: [&str; 19] = [
    "lab",
    "name",
    "about",
    "seed",
    "page",
    "network",
    "let",
    "sweep",
    "system",
    "fleet",
    "driver",
    "load",
    "probe",
    "lifecycle",
    "loop",
    "step",
    "expect",
    "variants",
    "gate",
];

/// What may be done from the page of a run.
fn page(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<PageAct>> {
    let choices = [PageAct::Mark, PageAct::Stop, PageAct::Rate].map(|act| (act.word(), act));
    let items = reader.list(field, "a list such as [\"mark\", \"stop\"]")?;
    let mut acts: Vec<PageAct> = all(items.into_iter().map(|item| reader.choice(item, &choices)))?;
    acts.sort_unstable();
    acts.dedup();
    Some(acts)
}

fn plan(
    reader: &mut Reader<'_>,
    root: &Fields<'_>,
    catalogue: &Catalogue,
    lines: &Lines<'_>,
) -> Option<Plan> {
    root.check_keys(&KEYS, reader);
    let name = root
        .require("name", "\"...\"", reader)
        .and_then(|field| reader.name(field));
    let about = root.value_or("about", String::new(), |field| {
        reader
            .text(field, "a string")
            .map(|text| text.as_str().to_owned())
    });
    let seed = root.value_or("seed", SEED, |field| {
        reader.count(field, 0..=i64::MAX.unsigned_abs())
    });
    let page = root.value_or("page", Vec::new(), |field| page(reader, field));
    let network = root.value_or("network", Network::default(), |field| {
        network::network(reader, field)
    });

    // Names first: a table may refer to one further down.
    let (word, line) = (Naming::Word, Naming::Line);
    let mut processes = NamesInUse::default();
    let systems = named(
        reader,
        root,
        "[[system]]",
        (word, MOST_SYSTEMS),
        &mut processes,
        lines,
    );
    let fleets = named(
        reader,
        root,
        "[[fleet]]",
        (word, MOST_SYSTEMS),
        &mut processes,
        lines,
    );
    reader.scope.systems = processes.names().collect();
    let with_ports = systems.iter().chain(&fleets);
    reader.scope.ports = with_ports
        .filter_map(|entry| entry.further_ports())
        .collect();
    reader.scope.copies = fleets
        .iter()
        .filter_map(|entry| Some((entry.name.clone()?, Some(1))))
        .chain(systems.iter().filter_map(|entry| {
            let copies = systems::copies(reader, entry);
            Some((entry.name.clone()?, copies))
        }))
        .collect();
    let mut of_loads = NamesInUse::default();
    let mut senders = named(
        reader,
        root,
        "[[load]]",
        (word, MOST_TABLES),
        &mut of_loads,
        lines,
    );
    let probes = named(
        reader,
        root,
        "[[probe]]",
        (word, MOST_TABLES),
        &mut of_loads,
        lines,
    );
    let (senders_too, probes): (Vec<_>, Vec<_>) = probes.into_iter().partition(probes::is_load);
    senders.extend(senders_too);
    senders.sort_by_key(|entry| entry.value.span().start);
    let mut named = |label, naming| {
        named(
            reader,
            root,
            label,
            (naming, MOST_TABLES),
            &mut NamesInUse::default(),
            lines,
        )
    };
    let drivers = named("[[driver]]", word);
    let lifecycles = named("[[lifecycle]]", word);
    let loops = named("[[loop]]", word);
    let steps = named("[[step]]", line);
    let expects = tables(reader, root, "[[expect]]", MOST_TABLES);

    for entry in steps.iter() {
        let names = loads::kept_names(entry.value).into_iter();
        let step = entry.name.clone().unwrap_or_default();
        for name in names {
            let kept = reader.scope.kept.entry(name.to_owned());
            kept.or_insert_with(|| step.clone());
        }
    }

    let mut makers = Makers::default();
    let drivers: Vec<_> = drivers
        .iter()
        .filter_map(|entry| drivers::driver(reader, entry, catalogue, &mut makers))
        .collect();
    let mut found: Vec<_> = systems
        .iter()
        .filter_map(|entry| {
            reader.scope.own.clone_from(&entry.name);
            systems::system(reader, entry, catalogue)
        })
        .collect();
    let seed_or_default = seed.unwrap_or(SEED);
    found.extend(fleets.iter().filter_map(|entry| {
        reader.scope.own.clone_from(&entry.name);
        fleets::fleet(reader, entry, catalogue, seed_or_default)
    }));
    reader.scope.own = None;
    found.sort_by_key(|found| found.span.start);
    reader.problems.extend(order::circles(&found));
    let lifecycle_names: Vec<String> = lifecycles
        .iter()
        .filter_map(|entry| entry.name.clone())
        .collect();
    let lifecycles: Vec<_> = lifecycles
        .iter()
        .filter_map(|entry| lifecycles::lifecycle(reader, entry))
        .collect();
    let loop_names: Vec<String> = loops
        .iter()
        .filter_map(|entry| entry.name.clone())
        .collect();
    let loops: Vec<_> = loops
        .iter()
        .filter_map(|entry| lifecycles::recurring(reader, entry))
        .collect();

    let step_names: Vec<String> = steps
        .iter()
        .filter_map(|entry| entry.name.clone())
        .collect();
    let places = senders.iter().map(|entry| entry.value.span());
    let places: Vec<_> = places.collect();
    let senders: Vec<Option<loads::Found>> = senders
        .iter()
        .map(|entry| loads::load(reader, entry, &step_names))
        .collect();
    if network == Some(Network::Own) {
        network::stays_inside(reader, &places, &senders);
    }
    let senders: Vec<loads::Found> = senders.into_iter().flatten().collect();
    let probes = probes::probes(reader, &probes, &found);

    let mut names = Names {
        entities: makers
            .kinds
            .iter()
            .map(|kind| (kind.what.clone(), kind.states.clone()))
            .collect(),
        // Of one that is wrong itself its points are not known.
        lifecycles: lifecycle_names
            .into_iter()
            .map(|name| (name, Vec::new()))
            .chain(lifecycles.iter().map(|l| {
                (
                    l.name.clone(),
                    l.points.iter().map(|(point, _)| point.clone()).collect(),
                )
            }))
            .collect(),
        loops: loop_names,
        // Of one that is wrong itself it is not known what is watched.
        systems: reader
            .scope
            .systems
            .iter()
            .map(|name| (name.clone(), WATCHES.to_vec()))
            .chain(
                found
                    .iter()
                    .map(|f| (f.system.name.clone(), f.system.watch.clone())),
            )
            .collect(),
        loads: senders
            .iter()
            .map(|found| found.used(&step_names))
            .collect(),
        probes: probes.iter().map(probes::Found::used).collect(),
        steps: step_names,
        searches: Vec::new(),
        faults: Vec::new(),
        kept: reader.scope.kept.keys().cloned().collect(),
    };
    if steps.is_empty() && root.get("step").is_none() {
        let problem = Problem::new(0..0, "the file has no [[step]], so nothing would happen");
        reader.problem(problem);
    }
    if root.get("driver").is_none() {
        let measures = !senders.is_empty() || !probes.is_empty();
        steps::without_driver(reader, &steps, measures, &mut makers);
    }
    let searches = |entry: &&entries::Entry<'_>| {
        let table = entry.value.get_ref().as_table();
        table.is_some_and(|table| table.contains_key("search"))
    };
    let searching = steps.iter().filter(searches);
    let mut under = loads::KnownLoads {
        loads: &senders,
        searches: Vec::new(),
        searching: searching.filter_map(|entry| entry.name.clone()).collect(),
    };
    let steps: Vec<_> = steps
        .iter()
        .filter_map(|entry| {
            let known = (found.as_slice(), probes.as_slice());
            steps::step(reader, entry, &makers, &mut names, &mut under, known)
        })
        .collect();
    let expects: Vec<_> = expects
        .into_iter()
        .filter_map(|value| steps::expect(reader, value, &makers, &names))
        .collect();
    let variants = gates::variants(reader, root);
    let gates = gates::gates(reader, root, &variants, &names);
    Some(Plan {
        name: name?,
        about: about?,
        seed: seed?,
        page: page?,
        network: network?,
        sweep: None,
        systems: found.into_iter().map(|found| found.system).collect(),
        drivers,
        loads: senders.into_iter().filter_map(|found| found.load).collect(),
        probes: probes.into_iter().filter_map(|found| found.probe).collect(),
        lifecycles,
        loops,
        steps,
        expects,
        variants,
        gates,
    })
}
