//! Whatever happens, in whatever order it is heard: the table ends as the BBS is.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A message of the stream.
type Sent = (&'static str, Vec<u8>);

/// A BBS of three processes in two domains, and what it has sent.
#[derive(Default)]
struct World {
    desired: BTreeMap<u8, DesiredLrp>,
    rows: Vec<ActualLrp>,
    sent: Vec<Sent>,
    made: u32,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Desire {
        process: u8,
        instances: i32,
        routes: u8,
    },
    Undesire {
        process: u8,
    },
    Start {
        process: u8,
        index: i32,
    },
    End {
        which: usize,
    },
    Ready {
        which: usize,
    },
    Evacuate {
        which: usize,
    },
    Suspect {
        which: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let (process, which) = (0u8..3, 0usize..8);
    prop_oneof![
        3 => (process.clone(), 0i32..4, 0u8..8).prop_map(|(process, instances, routes)| Op::Desire {
            process,
            instances,
            routes
        }),
        1 => process.clone().prop_map(|process| Op::Undesire { process }),
        4 => (process, 0i32..4).prop_map(|(process, index)| Op::Start { process, index }),
        2 => which.clone().prop_map(|which| Op::End { which }),
        1 => which.clone().prop_map(|which| Op::Ready { which }),
        1 => which.clone().prop_map(|which| Op::Evacuate { which }),
        1 => which.prop_map(|which| Op::Suspect { which }),
    ]
}

fn domain(process: u8) -> String {
    format!("d{}", process % 2)
}

impl World {
    fn does(&mut self, op: Op) {
        match op {
            Op::Desire {
                process,
                instances,
                routes,
            } => self.desire(process, instances, routes),
            Op::Undesire { process } => {
                if let Some(lrp) = self.desired.remove(&process) {
                    let event = DesiredLrpRemovedEvent {
                        desired_lrp: Some(lrp),
                        ..DesiredLrpRemovedEvent::default()
                    };
                    self.send("desired_lrp_removed", &event);
                }
            }
            Op::Start { process, index } => self.start(process, index),
            Op::End { which } => {
                if which < self.rows.len() {
                    let event = ActualLrpInstanceRemovedEvent {
                        actual_lrp: Some(self.rows.remove(which)),
                        ..ActualLrpInstanceRemovedEvent::default()
                    };
                    self.send("actual_lrp_instance_removed", &event);
                }
            }
            Op::Ready { which } => self.change(which, |row| {
                row.routable = Some(row.routable != Some(true));
                true
            }),
            Op::Suspect { which } => self.change(which, |row| {
                row.presence = match row.presence() {
                    Presence::Ordinary => Presence::Suspect.into(),
                    Presence::Suspect => Presence::Ordinary.into(),
                    Presence::Evacuating => return false,
                };
                true
            }),
            Op::Evacuate { which } => self.change(which, |row| {
                if row.presence() == Presence::Evacuating {
                    return false;
                }
                row.presence = Presence::Evacuating.into();
                let epoch = row.modification_tag.as_ref().unwrap().epoch.clone();
                // The change below counts on from here.
                row.modification_tag = tag(&format!("{epoch}-copy"), u32::MAX);
                true
            }),
        }
    }

    fn send(&mut self, name: &'static str, event: &impl Message) {
        self.sent.push((name, event.encode_to_vec()));
    }

    fn desire(&mut self, process: u8, instances: i32, routes: u8) {
        let before = self.desired.get(&process).cloned();
        let names = ["a", "b", "c"].into_iter().enumerate();
        let names = names.filter(|(bit, _)| routes & (1 << bit) != 0);
        // Two of the processes share their routes, as two versions of an application do.
        let names: Vec<_> = names
            .map(|(_, name)| format!("{name}.{}", process / 2))
            .collect();
        let json = serde_json::json!([{"hostnames": names, "port": 8080}]).to_string();
        let internal = r#"[{"hostname":"a.internal"}]"#;
        let known = before.as_ref().and_then(|lrp| lrp.modification_tag.clone());
        let next = known.map(|tag| ModificationTag {
            index: tag.index + 1,
            ..tag
        });
        self.made += 1;
        let after = DesiredLrp {
            process_guid: format!("p{process}"),
            domain: domain(process),
            instances,
            routes: Some(ProtoRoutes {
                routes: [
                    ("cf-router".to_owned(), json.into_bytes()),
                    ("internal-router".to_owned(), internal.as_bytes().to_vec()),
                ]
                .into(),
            }),
            modification_tag: next.or_else(|| tag(&format!("desired-{}", self.made), 0)),
            ..DesiredLrp::default()
        };
        self.desired.insert(process, after.clone());
        match before {
            None => {
                let event = DesiredLrpCreatedEvent {
                    desired_lrp: Some(after),
                    ..DesiredLrpCreatedEvent::default()
                };
                self.send("desired_lrp_created", &event);
            }
            before => {
                let event = DesiredLrpChangedEvent {
                    before,
                    after: Some(after),
                    ..DesiredLrpChangedEvent::default()
                };
                self.send("desired_lrp_changed", &event);
            }
        }
    }

    /// At the lowest free port of a cell: one that was in use not long ago.
    fn start(&mut self, process: u8, index: i32) {
        let port_of =
            |row: &ActualLrp| row.actual_lrp_net_info.as_ref().unwrap().ports[0].host_port;
        let port = (1..).find(|port| self.rows.iter().all(|row| port_of(row) != 61_000 + port));
        self.made += 1;
        let guid = format!("guid-{}", self.made);
        let row = with(runs(index, port.unwrap(), 0), |row| {
            row.actual_lrp_key.as_mut().unwrap().process_guid = format!("p{process}");
            row.actual_lrp_key.as_mut().unwrap().domain = domain(process);
            row.modification_tag = tag(&guid, 1);
            row.actual_lrp_instance_key.as_mut().unwrap().instance_guid = guid;
        });
        let before = with(row.clone(), |row| {
            row.state = "CLAIMED".into();
            row.modification_tag.as_mut().unwrap().index = 0;
        });
        self.rows.push(row.clone());
        self.sent_change(before, row);
    }

    fn change(&mut self, which: usize, change: impl FnOnce(&mut ActualLrp) -> bool) {
        let Some(row) = self.rows.get_mut(which) else {
            return;
        };
        let before = row.clone();
        if change(row) {
            let tag = row.modification_tag.as_mut().unwrap();
            tag.index = tag.index.wrapping_add(1);
            let after = row.clone();
            self.sent_change(before, after);
        }
    }

    fn sent_change(&mut self, before: ActualLrp, after: ActualLrp) {
        let event = ActualLrpInstanceChangedEvent {
            actual_lrp_key: after.actual_lrp_key.clone(),
            actual_lrp_instance_key: after.actual_lrp_instance_key.clone(),
            before: Some(info(before)),
            after: Some(info(after)),
            ..ActualLrpInstanceChangedEvent::default()
        };
        self.send("actual_lrp_instance_changed", &event);
    }

    /// What the BBS answers now; both domains are fresh.
    fn answer(&self) -> Snapshot {
        self.answer_without(&[], &["d0", "d1"])
    }

    /// As [`Self::answer`], of a database that has lost these processes.
    fn answer_without(&self, lost: &[u8], fresh: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::new(fresh.iter().map(ToString::to_string), None);
        let lost: Vec<_> = lost.iter().map(|process| format!("p{process}")).collect();
        for lrp in self.desired.values() {
            if !lost.contains(&lrp.process_guid) {
                snapshot.desired(Desired::of(lrp).unwrap());
            }
        }
        for row in &self.rows {
            if !lost.contains(&row.actual_lrp_key.as_ref().unwrap().process_guid)
                && let Some(instance) = Instance::of(row)
            {
                snapshot.instance(instance);
            }
        }
        snapshot
    }

    /// The table of somebody who has just come.
    fn seen_by_a_newcomer(&self) -> Router {
        let mut heard = Heard::default();
        heard.sync(self.answer());
        everything(&heard.table)
    }
}

impl Heard {
    fn takes(&mut self, (name, payload): &Sent) {
        for event in events_of(name, payload).unwrap() {
            let changes = self.table.apply(event);
            self.hear(&changes);
        }
    }

    fn is(&self, world: &World) -> Result<(), TestCaseError> {
        let known = everything(&self.table);
        prop_assert_eq!(&known, &world.seen_by_a_newcomer());
        prop_assert_eq!(&self.router, &known);
        let count = |of: fn(&Registration) -> bool| known.0.values().filter(|it| of(it)).count();
        prop_assert_eq!(
            self.table.counts().http,
            count(|it| matches!(it, Registration::Http(_)))
        );
        Ok(())
    }
}

/// What happens next around a table.
#[derive(Debug, Clone, Copy)]
enum Step {
    Does(Op),
    /// Some of what was sent arrives.
    Arrives(usize),
    BeginsSync,
    Answers,
    FinishesSync,
    AbandonsSync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => op().prop_map(Step::Does),
        4 => (1usize..4).prop_map(Step::Arrives),
        1 => Just(Step::BeginsSync),
        1 => Just(Step::Answers),
        1 => Just(Step::FinishesSync),
        1 => Just(Step::AbandonsSync),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Events come late but in order, and syncs take their time: nothing is lost and nothing is
    /// left, without a sync at the end.
    #[test]
    fn the_stream_and_syncs_agree(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut world, mut heard) = (World::default(), Heard::default());
        let mut on_the_way = VecDeque::new();
        let (mut asked, mut answer) = (false, None);
        for step in steps {
            match step {
                Step::Does(op) => {
                    world.does(op);
                    on_the_way.extend(world.sent.drain(..));
                }
                Step::Arrives(count) => {
                    for _ in 0..count {
                        if let Some(event) = on_the_way.pop_front() {
                            heard.takes(&event);
                        }
                    }
                }
                Step::BeginsSync if !asked => {
                    heard.table.begin_sync();
                    asked = true;
                }
                Step::Answers if asked => answer = Some(world.answer()),
                Step::FinishesSync => {
                    if let Some(answer) = answer.take() {
                        heard.answer(answer);
                        asked = false;
                    }
                }
                Step::AbandonsSync if asked => {
                    heard.table.abandon_sync();
                    (asked, answer) = (false, None);
                }
                _ => {}
            }
        }
        if let Some(answer) = answer {
            heard.answer(answer);
        }
        for event in on_the_way {
            heard.takes(&event);
        }
        heard.is(&world)?;
    }

    /// Events that overtake each other, are lost or come twice are put right by the next sync.
    #[test]
    fn a_sync_puts_everything_right(
        ops in proptest::collection::vec(op(), 0..40),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let (mut world, mut heard) = (World::default(), Heard::default());
        ops.into_iter().for_each(|op| world.does(op));
        for index in order {
            if !world.sent.is_empty() {
                heard.takes(&world.sent[index.index(world.sent.len())].clone());
            }
        }
        heard.sync(world.answer());
        heard.is(&world)?;
    }

    /// A domain that is not fresh loses no route for what the BBS does not know.
    #[test]
    fn a_stale_domain_never_loses_a_route(
        ops in proptest::collection::vec(op(), 0..40),
        lost in proptest::collection::vec(0u8..3, 0..4),
        fresh in proptest::sample::subsequence(vec!["d0", "d1"], 0..=2),
    ) {
        let (mut world, mut heard) = (World::default(), Heard::default());
        ops.into_iter().for_each(|op| world.does(op));
        heard.sync(world.answer());
        let before = heard.router.clone();
        let changes = heard.sync(world.answer_without(&lost, &fresh));
        let is_fresh = |process: u8| fresh.contains(&&*domain(process));
        // Whose registrations may go: those of processes that are lost in a fresh domain.
        let gone: Vec<u8> = lost.iter().copied().filter(|process| is_fresh(*process)).collect();
        let mut expected = Heard::default();
        expected.sync(world.answer_without(&gone, &["d0", "d1"]));
        prop_assert_eq!(everything(&heard.table), everything(&expected.table));
        if gone.is_empty() {
            prop_assert_eq!(changes, Changes::default());
            prop_assert_eq!(&heard.router, &before);
        }
        // And it is only a matter of time.
        heard.sync(world.answer());
        heard.is(&world)?;
    }
}
