use proptest::prelude::*;
use serde_json::json;

use super::{
    Basis, CONFIGS as CONFIGS_HELD, Changed, Configured, Fleet, RunOutcome, Status, UnixMillis,
};
use crate::reports::expected::ExpectedReports;
use crate::reports::level::FleetLevel;
use crate::reports::matching::{Ids, LooseExpected, Types};
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, RunLog};

const MINUTE: i64 = 60_000;
/// 2018-08-24 00:00.
const DAY: i64 = 1_535_068_800_000;

/// What is expected: directive `d<n>` of rule `r<n % 3>` with two values for each number.
fn expected(directives: &[u32]) -> ExpectedReports {
    let rules: Vec<_> = directives
        .iter()
        .map(|number| {
            let types = if number % 4 == 3 {
                vec!["rudderSystem"]
            } else {
                vec![]
            };
            json!({"rid": format!("r{}", number % 3), "ds": [{"did": format!("d{number}"),
                "t": types, "cs": [{"vid": "File", "vs": [["a"], ["b"]]}]}]})
        })
        .collect();
    let json = json!({
        "ms": {"gpm": {"m": "enforce", "o": true}, "gcm": "full-compliance", "gar": {"i": 5}},
        "rs": rules,
    });
    ExpectedReports::from_json(&json.to_string(), 1 << 20).unwrap()
}

/// A run that starts at a minute of the day: for each directive one key and type.
fn run_text(node: &str, minute: i64, config: Option<&str>, sent: &[(u32, &str, &str)]) -> String {
    let start = Moment::utc(jiff::Timestamp::from_millisecond(DAY + minute * MINUTE).unwrap());
    let line = |fields: String| {
        format!(
            "{start} R: @@T@@{fields}@@{}##{node}@#m\n",
            start.as_run_start()
        )
    };
    let marker = match config {
        Some(id) => line(format!("control@@rudder@@run@@0@@start@@{id}")),
        // Agents that do not know it leave it out of the log; here the start has another name.
        None => String::new(),
    };
    let reports = sent.iter().map(|(number, key, kind)| {
        line(format!(
            "{kind}@@r{}@@d{number}@@0@@File@@{key}",
            number % 3
        ))
    });
    marker + &reports.collect::<String>()
}

fn run(fleet: &mut Fleet, node: &str, text: &str, now: i64) -> RunOutcome {
    let name = format!("{node}_2018-08-24T00:00:00Z.log");
    let info = RunInfo::from_file_name(&name).unwrap().0;
    let log = RunLog::parse(info, text, &Limits::default()).unwrap();
    fleet.run(&log, at(now))
}

fn at(minute: i64) -> UnixMillis {
    DAY + minute * MINUTE
}

fn configure(fleet: &mut Fleet, node: &str, id: &str, minute: i64, numbers: &[u32]) -> Configured {
    fleet
        .configure(node, id, at(minute), &expected(numbers), at(minute))
        .unwrap()
}

fn counts(level: &FleetLevel) -> Vec<(Status, u64)> {
    let counts = Status::ALL
        .into_iter()
        .map(|status| (status, level[status]));
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_node_goes_through_its_life() {
    use Status::{
        EnforceError as Error, EnforceSuccess as Success, Missing, NoAnswer, Pending, Unexpected,
    };
    let mut fleet = Fleet::default();
    let all = |fleet: &Fleet| counts(fleet.global());
    let text = run_text(
        "n",
        10,
        Some("c1"),
        &[(1, "a", "result_success"), (9, "x", "result_na")],
    );
    assert_eq!(run(&mut fleet, "n", &text, 10), RunOutcome::UnknownNode);
    configure(&mut fleet, "n", "c1", 0, &[1, 2]);
    assert_eq!(all(&fleet), [(Pending, 4)]);
    assert_eq!(fleet.expire(at(10)), 0);
    assert_eq!(fleet.expire(at(10) + 1), 1);
    assert_eq!(all(&fleet), [(NoAnswer, 4)]);
    assert_eq!(
        run(&mut fleet, "n", &text, 10),
        RunOutcome::Counted { changed: true }
    );
    assert_eq!(run(&mut fleet, "n", &text, 10), RunOutcome::Duplicate);
    assert_eq!(all(&fleet), [(Success, 1), (Missing, 3), (Unexpected, 1)]);
    assert_eq!(counts(&fleet.rule("r1")), [(Success, 1), (Missing, 1)]);
    assert_eq!(counts(&fleet.directive("d9")), [(Unexpected, 1)]);
    // What both configurations have keeps its status.
    configure(&mut fleet, "n", "c2", 12, &[1, 4]);
    assert_eq!(all(&fleet), [(Success, 1), (Pending, 2), (Missing, 1)]);
    let sent = [
        (1, "a", "result_success"),
        (1, "b", "result_error"),
        (4, "a", "result_success"),
    ];
    let text = run_text("n", 15, Some("c2"), &sent);
    run(&mut fleet, "n", &text, 15);
    assert_eq!(all(&fleet), [(Success, 2), (Missing, 1), (Error, 1)]);
    let same = run_text("n", 20, Some("c2"), &sent);
    assert_eq!(
        run(&mut fleet, "n", &same, 20),
        RunOutcome::Counted { changed: false }
    );
    // An agent with a configuration that nobody knows.
    let text = run_text("n", 21, Some("c0"), &sent);
    run(&mut fleet, "n", &text, 21);
    assert_eq!(all(&fleet), [(Missing, 4), (Unexpected, 3)]);
    assert!(fleet.remove("n"));
    assert_eq!((all(&fleet), fleet.expirations.first()), (vec![], None));
}

#[test]
fn a_log_without_a_start_is_no_run() {
    let mut fleet = Fleet::default();
    configure(&mut fleet, "n", "c1", 0, &[1]);
    let text = run_text("n", 1, None, &[(1, "a", "result_success")]);
    assert_eq!(run(&mut fleet, "n", &text, 1), RunOutcome::Partial);
}

#[test]
fn a_run_is_taken_again_when_its_configuration_becomes_known() {
    let mut fleet = Fleet::default();
    fleet.add("n");
    let text = run_text("n", 1, Some("c1"), &[(1, "a", "result_success")]);
    run(&mut fleet, "n", &text, 1);
    assert_eq!(counts(fleet.global()), [(Status::Unexpected, 1)]);
    let configured = configure(&mut fleet, "n", "c1", 0, &[1]);
    assert!(configured.wants_run);
    assert_eq!(
        run(&mut fleet, "n", &text, 1),
        RunOutcome::Counted { changed: true }
    );
    assert_eq!(
        counts(fleet.global()),
        [(Status::EnforceSuccess, 1), (Status::Missing, 1)]
    );
    assert!(!configure(&mut fleet, "n", "c1", 0, &[1]).wants_run);
}

#[test]
fn what_a_schedule_runs_is_pending_in_runs_without_it() {
    let mut expected = expected(&[1, 2]);
    let second = &mut expected.rules[1].directives[0];
    assert_eq!(second.id, "d2");
    second.schedule = Some("nightly".into());
    let mut fleet = Fleet::default();
    fleet.configure("n", "c1", at(0), &expected, at(0)).unwrap();
    let mut sent = vec![(1, "a", "result_success"), (1, "b", "result_success")];
    let text = run_text("n", 1, Some("c1"), &sent);
    run(&mut fleet, "n", &text, 1);
    assert_eq!(
        counts(fleet.global()),
        [(Status::EnforceSuccess, 2), (Status::Pending, 2)]
    );
    // In a run with it what is missing is missing.
    sent.push((2, "a", "result_success"));
    let text = run_text("n", 6, Some("c1"), &sent);
    run(&mut fleet, "n", &text, 6);
    assert_eq!(
        counts(fleet.global()),
        [(Status::EnforceSuccess, 3), (Status::Missing, 1)]
    );
}

#[test]
fn the_last_compliance_is_kept_if_a_node_asks_for_it() {
    let mut fleet = Fleet::default();
    configure(&mut fleet, "n", "c1", 0, &[1]);
    fleet.set_keep_last(|_| 60 * MINUTE, at(0));
    let text = run_text("n", 1, Some("c1"), &[(1, "a", "result_success")]);
    run(&mut fleet, "n", &text, 1);
    let shown = counts(fleet.global());
    assert_eq!(fleet.expire(at(12)), 0);
    assert!(matches!(fleet.node("n").unwrap().0, Basis::NoReport { .. }));
    assert_eq!(fleet.expire(at(71)), 0);
    assert_eq!(counts(fleet.global()), shown);
    assert_eq!(fleet.expire(at(71) + 1), 1);
    assert_eq!(counts(fleet.global()), [(Status::NoAnswer, 2)]);
    fleet.set_node("n", false, at(80));
    assert_eq!(counts(fleet.global()), []);
}

#[test]
fn many_changes_between_two_runs_leave_what_stays_as_it_is() {
    use Status::{EnforceSuccess as Success, Pending};
    let mut fleet = Fleet::default();
    configure(&mut fleet, "n", "c0", 0, &[1, 2]);
    let sent = [(1, "a", "result_success"), (1, "b", "result_success")];
    let text = run_text("n", 1, Some("c0"), &sent);
    run(&mut fleet, "n", &text, 1);
    // Far more than an agent's interval sees, each with another directive.
    for change in 0..50 {
        configure(
            &mut fleet,
            "n",
            &format!("c{}", change + 1),
            2,
            &[1, 4 * change + 8],
        );
        assert_eq!(
            counts(fleet.global()),
            [(Success, 2), (Pending, 2)],
            "{change}"
        );
    }
    // An agent that was slow to fetch them: its configuration is some of them back.
    let text = run_text("n", 3, Some("c41"), &sent);
    run(&mut fleet, "n", &text, 3);
    assert_eq!(counts(fleet.global()), [(Success, 2), (Pending, 2)]);
    // What is held is bounded, whatever comes.
    assert!(
        fleet.nodes[0].configs.len() <= 17,
        "{}",
        fleet.nodes[0].configs.len()
    );
    // What ended long ago goes: a run with it would count the same without it.
    for hour in 1..6 {
        configure(&mut fleet, "n", &format!("h{hour}"), 60 * hour, &[1]);
    }
    assert!(
        fleet.nodes[0].configs.len() <= 6,
        "{}",
        fleet.nodes[0].configs.len()
    );
    assert_eq!(counts(fleet.global()), [(Success, 2)]);
}

#[test]
fn identifiers_that_nodes_make_up_leave_numbers_for_those_that_are_defined() {
    let mut fleet = Fleet {
        ids: Ids::new(40),
        ..Fleet::default()
    };
    configure(&mut fleet, "n", "c1", 0, &[1]);
    let sent: Vec<_> = (100..150)
        .map(|number| (number, "a", "result_success"))
        .collect();
    let text = run_text("n", 1, Some("c1"), &sent);
    let long = "d".repeat(300);
    let text = text.replace("@@d100@@", &format!("@@{long}@@"));
    run(&mut fleet, "n", &text, 1);
    assert_eq!(
        counts(fleet.global()),
        [(Status::Missing, 2), (Status::Unexpected, 50)]
    );
    // Nobody can define what is longer than an identity may be.
    assert_eq!(fleet.ids.known(&long), None);
    configure(&mut fleet, "n", "c2", 2, &[1, 5, 6]);
    for directive in ["d5", "d6"] {
        assert_eq!(
            counts(&fleet.directive(directive)),
            [(Status::Pending, 2)],
            "{directive}"
        );
    }
}

#[derive(Debug, Clone)]
enum Event {
    Configure(usize, usize),
    Run(usize, usize, Vec<(u32, usize, usize)>),
    Wait(i64),
    Enable(usize, bool),
    KeepLast(usize, i64),
    Remove(usize),
    Group(usize, Vec<usize>, Vec<usize>),
}

const NODES: [&str; 3] = ["n0", "n1", "n2"];
const CONFIGS: [&str; 4] = ["c0", "c1", "c2", "c3"];
const NUMBERS: [&[u32]; 4] = [&[1, 2, 3], &[1, 3], &[2, 4, 7], &[]];
const KINDS: [&str; 5] = [
    "result_success",
    "result_error",
    "result_repaired",
    "log_info",
    "result_new",
];

fn event() -> impl Strategy<Value = Event> {
    let sent = prop::collection::vec((0_u32..8, 0..3_usize, 0..5_usize), 0..6);
    prop_oneof![
        3 => (0..3_usize, 0..4_usize).prop_map(|(node, config)| Event::Configure(node, config)),
        5 => (0..3_usize, 0..5_usize, sent)
            .prop_map(|(node, config, sent)| Event::Run(node, config, sent)),
        3 => (0_i64..9).prop_map(Event::Wait),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, enabled)| Event::Enable(node, enabled)),
        1 => (0..3_usize, 0_i64..20).prop_map(|(node, minutes)| Event::KeepLast(node, minutes)),
        1 => (0..3_usize).prop_map(Event::Remove),
        1 => (0..2_usize, prop::collection::vec(0..3_usize, 0..3),
              prop::collection::vec(0..3_usize, 0..3))
            .prop_map(|(group, nodes, rules)| Event::Group(group, nodes, rules)),
    ]
}

/// All that is known of a node in the end.
#[derive(Debug, Clone, Default)]
struct Known {
    enabled: Option<bool>,
    keep_last: i64,
    /// In order: which configurations are still held when a run comes follows from what came
    /// before it.
    told: Vec<Told>,
}

/// What was told of a node, and when.
#[derive(Debug, Clone)]
enum Told {
    Config(usize, i64),
    Run(String, i64),
}

impl Known {
    /// The configurations that it was told of, and since when each holds.
    fn configs(&self) -> impl Iterator<Item = (usize, i64)> {
        self.told.iter().filter_map(|told| match told {
            Told::Config(config, begin) => Some((*config, *begin)),
            Told::Run(..) => None,
        })
    }
}

/// Gives a node a configuration, and its last run once more where that is wanted.
fn configure_as_told(fleet: &mut Fleet, node: &str, before: &[Told], config: usize, minute: i64) {
    let configured = configure(fleet, node, CONFIGS[config], minute, NUMBERS[config]);
    let last = before.iter().rev().find_map(|told| match told {
        Told::Run(text, _) => Some(text),
        Told::Config(..) => None,
    });
    if configured.wants_run {
        run(fleet, node, last.unwrap(), minute);
    }
}

/// Everything that a fleet shows.
fn shown(fleet: &Fleet) -> Vec<FleetLevel> {
    let mut all = vec![*fleet.global(), *fleet.system()];
    all.extend((0..3).map(|rule| fleet.rule(&format!("r{rule}"))));
    all.extend((0..8).map(|directive| fleet.directive(&format!("d{directive}"))));
    for group in ["g0", "g1"] {
        let (global, targeted) = fleet.group(group).copied_or_default();
        all.extend([global, targeted]);
    }
    for node in NODES {
        all.extend([Types::USER, Types::SYSTEM].map(|types| fleet.node_level(node, types)));
    }
    all
}

/// The levels of all that has a name.
fn named(fleet: &Fleet) -> Vec<(String, Vec<FleetLevel>)> {
    let rules = (0..3).map(|rule| format!("r{rule}"));
    let rules = rules.map(|rule| (rule.clone(), vec![fleet.rule(&rule)]));
    let directives = (0..8).map(|directive| format!("d{directive}"));
    let directives = directives.map(|name| (name.clone(), vec![fleet.directive(&name)]));
    let nodes = NODES.map(|node| {
        let levels = [Types::USER, Types::SYSTEM].map(|types| fleet.node_level(node, types));
        (node.to_owned(), levels.to_vec())
    });
    let groups = ["g0", "g1"].map(|group| {
        let (global, targeted) = fleet.group(group).copied_or_default();
        (group.to_owned(), vec![global, targeted])
    });
    rules.chain(directives).chain(nodes).chain(groups).collect()
}

trait CopiedOrDefault {
    fn copied_or_default(self) -> (FleetLevel, FleetLevel);
}

impl CopiedOrDefault for Option<(&FleetLevel, &FleetLevel)> {
    fn copied_or_default(self) -> (FleetLevel, FleetLevel) {
        self.map(|(one, other)| (*one, *other)).unwrap_or_default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_current_equals_what_is_computed_from_scratch(
        events in prop::collection::vec(event(), 1..40),
    ) {
        let mut fleet = Fleet::default();
        let mut known = vec![Known::default(); NODES.len()];
        let mut groups = vec![None; 2];
        let mut now = 0;
        for event in events {
            let before = named(&fleet);
            fleet.take_changed();
            match event {
                Event::Wait(minutes) => {
                    now += minutes;
                    fleet.expire(at(now));
                }
                Event::Configure(node, config) => {
                    let known = &mut known[node];
                    configure_as_told(&mut fleet, NODES[node], &known.told, config, now);
                    known.told.push(Told::Config(config, now));
                }
                Event::Run(node, config, sent) => {
                    let sent: Vec<_> = sent
                        .iter()
                        .map(|(number, key, kind)| (*number, ["a", "b", "c"][*key], KINDS[*kind]))
                        .collect();
                    let id = CONFIGS.get(config).copied().unwrap_or("c9");
                    let text = run_text(NODES[node], now, Some(id), &sent);
                    if matches!(run(&mut fleet, NODES[node], &text, now), RunOutcome::Counted { .. }) {
                        known[node].told.push(Told::Run(text, now));
                    }
                }
                Event::Enable(node, enabled) => {
                    fleet.set_node(NODES[node], enabled, at(now));
                    known[node].enabled = Some(enabled);
                }
                Event::KeepLast(node, minutes) => {
                    // Of those that are there.
                    known[node].keep_last = match fleet.numbers.contains_key(NODES[node]) {
                        true => minutes,
                        false => 0,
                    };
                    let of = |name: &str| {
                        let at = NODES.iter().position(|node| *node == name).unwrap();
                        known[at].keep_last * MINUTE
                    };
                    fleet.set_keep_last(of, at(now));
                }
                Event::Remove(node) => {
                    fleet.remove(NODES[node]);
                    known[node] = Known::default();
                    for (nodes, _) in groups.iter_mut().flatten() {
                        let nodes: &mut Vec<usize> = nodes;
                        nodes.retain(|member| *member != node);
                    }
                }
                Event::Group(group, nodes, rules) => {
                    let names = nodes.iter().map(|node| NODES[*node]);
                    let rule_names: Vec<String> =
                        rules.iter().map(|rule| format!("r{rule}")).collect();
                    fleet.set_group(&format!("g{group}"), names, rule_names.iter().map(|r| &**r));
                    groups[group] = Some((nodes, rule_names));
                }
            }
            let mut scratch = Fleet::default();
            for (group, made) in groups.iter().enumerate() {
                if let Some((nodes, rules)) = made {
                    let names = nodes.iter().map(|node| NODES[*node]);
                    scratch.set_group(&format!("g{group}"), names, rules.iter().map(|r| &**r));
                }
            }
            for (node, known) in NODES.iter().zip(&known) {
                scratch.add(node);
                for (place, told) in known.told.iter().enumerate() {
                    match told {
                        Told::Config(config, begin) => {
                            let before = &known.told[..place];
                            configure_as_told(&mut scratch, node, before, *config, *begin);
                        }
                        Told::Run(text, came) => {
                            run(&mut scratch, node, text, *came);
                        }
                    }
                }
                if let Some(enabled) = known.enabled {
                    scratch.set_node(node, enabled, at(now));
                }
            }
            // Said last, as by a server that has just started.
            let of = |name: &str| {
                let at = NODES.iter().position(|node| *node == name).unwrap();
                known[at].keep_last * MINUTE
            };
            scratch.set_keep_last(of, at(now));
            for node in NODES {
                scratch.update(scratch.numbers[node], at(now));
            }
            prop_assert_eq!(shown(&fleet), shown(&scratch));
            // As many as are held in any case, so that none was forgotten.
            if known.iter().all(|known| known.configs().count() <= CONFIGS_HELD) {
                let mut restored = Fleet::default();
                for (node, known) in NODES.iter().zip(&known) {
                    restored.add(node);
                    restored.set_node(node, known.enabled.unwrap_or(true), at(now));
                    for (config, begin) in known.configs() {
                        let expected = LooseExpected::compile(&expected(NUMBERS[config])).unwrap();
                        restored.restore_config(node, CONFIGS[config], at(begin), expected);
                    }
                    let last = known.told.iter().rev().find_map(|told| match told {
                        Told::Run(text, _) => Some(text),
                        Told::Config(..) => None,
                    });
                    if let Some(text) = last {
                        run(&mut restored, node, text, now);
                    }
                }
                restored.settle(at(now));
                for (group, made) in groups.iter().enumerate() {
                    if let Some((nodes, rules)) = made {
                        let names = nodes.iter().map(|node| NODES[*node]);
                        restored.set_group(&format!("g{group}"), names, rules.iter().map(|r| &**r));
                    }
                }
                restored.set_keep_last(of, at(now));
                prop_assert_eq!(shown(&restored), shown(&scratch));
            }
            let changed = fleet.take_changed();
            for ((name, old), (_, new)) in before.into_iter().zip(named(&fleet)) {
                let told = changed.nodes.iter().map(|node| &**node)
                    .chain(changed.rules.iter().map(|rule| &**rule))
                    .chain(changed.directives.iter().map(|directive| &**directive))
                    .chain(changed.groups.iter().map(|group| &**group))
                    .any(|told| told == name);
                prop_assert!(told || old == new, "{} changed and was not told", name);
            }
            prop_assert_eq!(fleet.take_changed(), Changed::default());
            let mut sum = FleetLevel::default();
            for node in NODES {
                sum += &fleet.node_level(node, Types::USER);
            }
            prop_assert_eq!(&sum, fleet.global());
        }
    }
}
