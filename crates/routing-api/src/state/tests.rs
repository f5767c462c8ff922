//! Calls against a state, and against a naive model of it.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::model::ErrorName;

/// A state whose commits always succeed.
#[derive(Default)]
struct Sut {
    state: State,
    guids: u32,
}

impl Sut {
    fn with_group() -> Self {
        let mut sut = Self::default();
        sut.run(0, Command::Seed(vec![group("tcp-group")])).unwrap();
        sut
    }

    fn run(
        &mut self,
        now: Millis,
        command: Command,
    ) -> Result<(Reply, Vec<Change>), crate::model::ApiError> {
        let mut batch = Batch::default();
        let guids = &mut self.guids;
        let reply = batch.apply(
            &self.state,
            command,
            &mut Context {
                now,
                max_ttl: 120,
                guid: &mut || {
                    *guids += 1;
                    format!("guid-{guids}")
                },
            },
        )?;
        let changes = std::mem::take(&mut batch.changes);
        self.state.merge(batch);
        Ok((reply, changes))
    }

    fn upsert(&mut self, now: Millis, mapping: TcpMapping) -> Vec<Change> {
        self.run(now, Command::UpsertTcp(vec![mapping])).unwrap().1
    }
}

fn group(guid: &str) -> RouterGroup {
    RouterGroup {
        guid: guid.into(),
        name: guid.into(),
        kind: "tcp".into(),
        reservable_ports: "1024-65535".into(),
    }
}

fn mapping(port: u16, host: u8) -> TcpMapping {
    TcpMapping {
        router_group_guid: "tcp-group".into(),
        port,
        backend_ip: format!("10.0.0.{host}"),
        backend_port: 8080,
        ..TcpMapping::default()
    }
}

#[test]
fn a_new_row_has_index_0_and_each_heartbeat_adds_1() {
    let mut sut = Sut::with_group();
    for (index, now) in [0, 1000, 2000].into_iter().enumerate() {
        let changes = sut.upsert(now, mapping(5200, 1));
        let [Change::Tcp(true, row)] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!(row.value.modification_tag.index as usize, index);
        assert_eq!(row.value.modification_tag.guid, "guid-1");
        assert_eq!(row.expires, now + 120_000);
    }
}

#[test]
fn a_row_made_anew_has_another_guid() {
    let mut sut = Sut::with_group();
    sut.upsert(0, mapping(5200, 1));
    let (_, gone) = sut
        .run(0, Command::DeleteTcp(vec![mapping(5200, 1)]))
        .unwrap();
    assert!(matches!(&gone[..], [Change::Tcp(false, _)]));
    let (_, nothing) = sut
        .run(0, Command::DeleteTcp(vec![mapping(5200, 1)]))
        .unwrap();
    assert!(nothing.is_empty());
    sut.upsert(0, mapping(5200, 1));
    let row = sut.state.tcp.values().next().unwrap();
    assert_eq!(row.value.modification_tag.guid, "guid-2");
}

#[test]
fn another_instance_at_the_same_ports_is_another_row() {
    let mut sut = Sut::with_group();
    let of = |instance: &str, tls_port| TcpMapping {
        instance_id: instance.into(),
        backend_tls_port: tls_port,
        ..mapping(5200, 1)
    };
    sut.upsert(0, of("a", 8443));
    let changes = sut.upsert(0, of("b", 8443));
    let [Change::Tcp(false, gone), Change::Tcp(true, row)] = &changes[..] else {
        panic!("{changes:?}");
    };
    let instances = (&*gone.value.instance_id, &*row.value.instance_id);
    assert_eq!(instances, ("a", "b"));
    assert_eq!(row.value.modification_tag.guid, "guid-2");
    assert_eq!(sut.state.tcp.len(), 1);
    // Nobody is asked for a certificate here.
    sut.upsert(0, of("a", -1));
    for renewing in [of("b", -1), of("", 8443)] {
        let changes = sut.upsert(0, renewing);
        assert!(matches!(&changes[..], [Change::Tcp(true, _)]));
    }
}

#[test]
fn one_bad_mapping_and_nothing_is_written() {
    let mut sut = Sut::with_group();
    let bad = TcpMapping {
        router_group_guid: "nobody".into(),
        ..mapping(5201, 1)
    };
    let error = sut
        .run(0, Command::UpsertTcp(vec![mapping(5200, 1), bad]))
        .unwrap_err();
    assert_eq!(error.name, ErrorName::ProcessRequestError);
    assert_eq!(
        error.message,
        "Cannot process request: router_group_guid: nobody not found"
    );
    assert!(sut.state.tcp.is_empty());
}

#[test]
fn backends_of_one_port_and_name_agree_on_who_ends_tls() {
    let mut sut = Sut::with_group();
    let ends = |mapping| TcpMapping {
        terminate_frontend_tls: true,
        ..mapping
    };
    sut.upsert(0, mapping(5200, 1));
    let refused = |sut: &mut Sut, now, list| {
        let error = sut.run(now, Command::UpsertTcp(list)).unwrap_err();
        assert_eq!(
            error.message,
            "Cannot process request: terminate_frontend_tls: true not allowed"
        );
    };
    refused(&mut sut, 0, vec![ends(mapping(5200, 2))]);
    refused(&mut sut, 0, vec![mapping(5201, 1), ends(mapping(5201, 2))]);
    // Another name is another matter, and so is what expired.
    let named = TcpMapping {
        backend_sni_hostname: Some("a.example.com".into()),
        ..ends(mapping(5200, 2))
    };
    sut.upsert(0, named);
    sut.upsert(120_001, ends(mapping(5200, 3)));
}

#[test]
fn pruning_leaves_a_second_and_tells_of_each_row() {
    let mut sut = Sut::with_group();
    let short = TcpMapping {
        ttl: Some(1),
        ..mapping(5200, 1)
    };
    sut.upsert(0, short);
    let route = HttpRoute {
        route: "a.b".into(),
        port: 1,
        ip: "10.0.0.1".into(),
        ttl: Some(1),
        ..HttpRoute::default()
    };
    sut.run(0, Command::UpsertHttp(vec![route])).unwrap();
    assert!(sut.state.tcp_mappings(&[], 1000).is_empty());
    assert!(sut.state.http_routes(1000).is_empty());
    assert_eq!(sut.run(2000, Command::Prune).unwrap().0, Reply::Pruned(0));
    let (reply, changes) = sut.run(2001, Command::Prune).unwrap();
    assert_eq!(reply, Reply::Pruned(2));
    assert!(matches!(
        &changes[..],
        [Change::Tcp(false, _), Change::Http(false, _)]
    ));
    assert!(sut.state.tcp.is_empty() && sut.state.http.is_empty());
}

#[test]
fn groups_are_unique_and_only_their_ports_change() {
    let mut sut = Sut::with_group();
    let made = RouterGroup {
        guid: "ignored".into(),
        ..group("other")
    };
    let (Reply::Created(made), _) = sut.run(0, Command::CreateGroup(made)).unwrap() else {
        panic!("not created");
    };
    assert_eq!(made.guid, "guid-1");
    let (again, _) = sut.run(0, Command::CreateGroup(group("other"))).unwrap();
    assert_eq!(again, Reply::Group(Arc::clone(&made)));
    let kind = RouterGroup {
        kind: "else".into(),
        ..group("other")
    };
    let error = sut.run(0, Command::CreateGroup(kind)).unwrap_err();
    assert_eq!(
        error.message,
        "Cannot process request: Router group name must be unique"
    );
    let update = |guid: &str, ports: &str| Command::UpdateGroup {
        guid: guid.into(),
        reservable_ports: ports.into(),
    };
    let (Reply::Group(updated), _) = sut.run(0, update("guid-1", "2000")).unwrap() else {
        panic!("not updated");
    };
    assert_eq!(updated.reservable_ports, "2000");
    let error = sut.run(0, update("guid-1", "")).unwrap_err();
    assert_eq!(
        error.message,
        "Cannot process request: missing reservable_ports in router group: other"
    );
    let error = sut.run(0, update("nobody", "2000")).unwrap_err();
    assert_eq!(error.name, ErrorName::ResourceNotFoundError);
    let delete = || Command::DeleteGroup("guid-1".into());
    assert_eq!(sut.run(0, delete()).unwrap().0, Reply::Done);
    assert_eq!(sut.run(0, delete()).unwrap().0, Reply::NoGroup);
}

#[test]
fn seeds_fill_only_an_empty_table() {
    let mut sut = Sut::with_group();
    sut.run(0, Command::Seed(vec![group("late")])).unwrap();
    assert_eq!(sut.state.groups.len(), 1);
}

#[derive(Debug, Clone)]
enum Step {
    Upsert(u16, u8, i64),
    Delete(u16, u8),
    Prune,
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let (port, host) = (5200u16..5203, 1u8..4);
    prop_oneof![
        (port.clone(), host.clone(), 1i64..5)
            .prop_map(|(port, host, ttl)| Step::Upsert(port, host, ttl)),
        (port, host).prop_map(|(port, host)| Step::Delete(port, host)),
        Just(Step::Prune),
        (1i64..3000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever is done, and however it is cut into batches, a naive model agrees; numbers
    /// of rows are never used twice by live rows.
    #[test]
    fn a_naive_model_agrees(steps in proptest::collection::vec((step(), any::<bool>()), 1..60)) {
        let mut sut = Sut::with_group();
        let mut naive: HashMap<(u16, u8), (i64, u32)> = HashMap::new();
        let (mut now, mut batch, mut guids) = (0, Batch::default(), 0);
        for (step, cut) in steps {
            let command = match step {
                Step::Upsert(port, host, ttl) => {
                    let row = naive.entry((port, host));
                    row.and_modify(|row| *row = (now + ttl * 1000, row.1 + 1))
                        .or_insert((now + ttl * 1000, 0));
                    let ttl = Some(ttl);
                    Command::UpsertTcp(vec![TcpMapping { ttl, ..mapping(port, host) }])
                }
                Step::Delete(port, host) => {
                    naive.remove(&(port, host));
                    Command::DeleteTcp(vec![mapping(port, host)])
                }
                Step::Prune => {
                    naive.retain(|_, row| row.0 >= now - 1000);
                    // Pruning looks at rows that are durable; the server prunes alone.
                    sut.state.merge(std::mem::take(&mut batch));
                    Command::Prune
                }
                Step::Wait(pause) => {
                    now += pause;
                    continue;
                }
            };
            let mut guid = || { guids += 1; guids.to_string() };
            let mut context = Context { now, max_ttl: 120, guid: &mut guid };
            batch.apply(&sut.state, command, &mut context).unwrap();
            if cut {
                sut.state.merge(std::mem::take(&mut batch));
            }
        }
        sut.state.merge(batch);
        let mut ids: Vec<_> = sut.state.tcp.values().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), sut.state.tcp.len());
        let seen: HashMap<_, _> = sut.state.tcp.values().map(|row| {
            let host = row.value.backend_ip.rsplit('.').next().unwrap().parse().unwrap();
            ((row.value.port, host), (row.expires, row.value.modification_tag.index))
        }).collect();
        prop_assert_eq!(seen, naive);
    }
}
