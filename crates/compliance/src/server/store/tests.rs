//! The same on both databases: what was written is what is read.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use commit::postgres::{Found, PostgresSettings};
use stats::SplitMix;

use super::*;
use crate::acceptance::{KeyStatus, Known, NodeStatus};
use crate::definitions::{Definitions, Delta, Edit, Object};
use crate::model::node::Node;
use crate::model::rule::Rule;
use crate::reports::history::HourAggregate;
use crate::reports::level::ComplianceLevel;
use crate::reports::signature::NodeCertificate;
use crate::reports::status::Status;
use crate::server::state::{
    Access, Exception, NodeRecord, PolicyRecord, RefusedRecord, RunRecord, ServedPolicy,
    TokenRecord,
};
use crate::server::tests::cluster::Cluster;
use crate::server::tests::identity;

/// Writes, in batches of up to a dozen.
const WRITES: usize = 600;

/// What clients may call things.
const NAMES: [&str; 4] = ["a", "with a \0 in it", "\u{10ffff}'\"\\", ""];

/// What is drawn, and what makes it fit what came before.
struct Drawing {
    random: SplitMix,
    certificate: String,
    version: i64,
    run: i64,
    /// Tokens that there are.
    tokens: Vec<usize>,
}

impl Drawing {
    fn below(&mut self, most: usize) -> usize {
        (self.random.unit() * most as f64) as usize
    }

    fn name(&mut self) -> String {
        NAMES[self.below(NAMES.len())].to_owned()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(300);
        (0..length).map(|_| self.random.bits() as u8).collect()
    }

    fn node(&mut self) -> Write {
        let number = 1 + self.below(4) as i64;
        let (id, hostname) = (format!("n{number}"), self.name());
        let certificate = self.certificate.clone();
        let pending = self.below(2) == 0;
        let record = NodeRecord {
            number,
            known: Known {
                standing: if pending {
                    NodeStatus::Pending
                } else {
                    NodeStatus::Accepted
                },
                hostname: hostname.clone(),
                key: NodeCertificate::from_pem(certificate.as_bytes()).unwrap(),
                key_status: KeyStatus::Certified,
            },
            certificate: certificate.into(),
            node: Arc::new(Node::new(&*id, hostname)),
            received: self.random.bits() as i64,
        };
        let inventory = (self.below(2) == 0).then(|| self.bytes());
        Write::Node(id.into(), Arc::new(record), inventory)
    }

    fn policy(&mut self) -> Write {
        let number = 1 + self.below(4) as i64;
        let served = (self.below(5) > 0).then(|| ServedPolicy {
            config_id: format!("c{}", self.below(4)).into(),
            digest: [self.below(256) as u8; 32],
            // The same content comes again.
            document: vec![self.below(8) as u8; 40].into(),
        });
        let record = PolicyRecord {
            node: format!("n{number}").into(),
            // Some are days apart, some lie wherever the clock was.
            begin: match self.below(5) {
                0 => self.random.bits() as i64,
                _ => self.below(20) as i64 * 20_000_000,
            },
            served,
            expected: vec![self.below(8) as u8; 60],
        };
        // Any run will do, or one that is gone.
        let run = (self.below(3) > 0).then(|| self.below(self.run.max(1) as usize) as i64);
        Write::Policy(Arc::new(record), number, run)
    }

    fn run(&mut self) -> Write {
        self.run += 1;
        let exceptions = (0..self.below(4)).map(|_| Exception {
            rule: self.name(),
            directive: self.name(),
            component: self.name(),
            key: self.name(),
            kind: "result_error",
            message: self.name(),
        });
        let exceptions = exceptions.collect();
        let record = RunRecord {
            node: "n".into(),
            start: self.run * 7,
            received: self.random.bits() as i64,
            config_id: match self.below(3) {
                0 => None,
                1 => Some(self.name()),
                _ => Some(format!("c{}", self.below(4))),
            },
            whole: self.below(4) > 0,
            digest: self.run,
            reports: self.random.bits() as u32,
            message: self.bytes().into(),
            signed: self.below(2) == 0,
            exceptions,
        };
        Write::Run(Box::new(record), self.run, 1 + self.below(4) as i64)
    }

    fn hours(&mut self) -> Write {
        let hours = (0..self.below(4)).map(|_| {
            let begin = self.below(5) as i64;
            let count = self.below(9) as u32;
            let hour = HourAggregate {
                begin,
                known: self.random.bits() as i64,
                level: ComplianceLevel::of(Status::EnforceError, count).into(),
                lowest: self.random.unit(),
                highest: self.random.unit() * 1e300,
                weighted: -self.random.unit() / 3.0,
            };
            (self.name().into(), hour)
        });
        Write::History(hours.collect())
    }

    fn token(&mut self) -> Write {
        let one = self.below(3);
        if let Some(at) = self.tokens.iter().position(|known| *known == one) {
            self.tokens.remove(at);
            return Write::Revoke(format!("t{one}").into());
        }
        self.tokens.push(one);
        Write::Token(Arc::new(TokenRecord {
            id: format!("t{one}").into(),
            name: self.name(),
            access: if self.below(2) == 0 {
                Access::Read
            } else {
                Access::Write
            },
            hash: [self.below(256) as u8; 32],
            created: self.random.bits() as i64,
        }))
    }

    fn write(&mut self) -> Write {
        match self.below(16) {
            0..3 => self.node(),
            3..6 => self.policy(),
            6..10 => self.run(),
            10 => self.hours(),
            11 => self.token(),
            12 => Write::Refused(RefusedRecord {
                at: self.random.bits() as i64,
                name: self.name(),
                why: self.name(),
                body: self.bytes().into(),
            }),
            13 => {
                self.version += 1;
                let rule = Rule::new(self.name(), self.name());
                let edit = if self.below(2) == 0 {
                    Edit::Put(Object::Rule(rule))
                } else {
                    let mut folder = Definitions::default();
                    folder.rules.insert(rule.id.clone(), rule);
                    Edit::Folder(Box::new(Delta::between(&Definitions::default(), &folder)))
                };
                Write::Edit(Box::new(edit), self.version, 5)
            }
            14 => {
                self.version += 1;
                Write::Definitions(Arc::new(Definitions::default()), self.version, 6)
            }
            _ => {
                let number = 1 + self.below(4) as i64;
                Write::Forget(format!("n{number}").into(), number)
            }
        }
    }
}

/// Every column of every table but numbers that a database gives by itself.
const ALL: [(&str, &str); 11] = [
    (
        "nodes",
        "SELECT number, id, standing, key_status, certificate, node, inventory FROM nodes ORDER BY number",
    ),
    (
        "nodes",
        "SELECT number, received FROM nodes ORDER BY number",
    ),
    (
        "definitions",
        "SELECT version, body, at FROM definitions ORDER BY version",
    ),
    (
        "edits",
        "SELECT version, body, at FROM edits ORDER BY version",
    ),
    (
        "tokens",
        "SELECT created, id, name, access, hash FROM tokens ORDER BY id",
    ),
    (
        "configurations",
        "SELECT c.begin, c.node, c.config_id, c.digest, p.body, e.body FROM configurations c
        LEFT JOIN contents p ON p.number = c.policy LEFT JOIN contents e ON e.number = c.expected
        ORDER BY c.node, c.number",
    ),
    (
        "contents",
        "SELECT CAST(0 AS bigint), hash, body FROM contents ORDER BY hash",
    ),
    (
        "runs",
        "SELECT number, node, start, received, config_id, whole, reports, message, signed FROM runs ORDER BY number",
    ),
    (
        "exceptions",
        "SELECT run, rule, directive, component, key, kind, message FROM exceptions
        ORDER BY run, rule, directive, component, key, message",
    ),
    (
        "refused",
        "SELECT at, name, why, body FROM refused ORDER BY number",
    ),
    (
        "history",
        "SELECT begin, thing, known, lowest, highest, weighted, level FROM history ORDER BY thing, begin",
    ),
];

async fn all(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for (table, query) in ALL {
        let columns = query.split(" FROM ").next().unwrap_or_default();
        let columns = columns.split(',').count();
        let take = |row: Row<'_>| {
            // Each column as the first kind of value that it can be read as.
            let cells = (0..columns).map(|column| {
                if let Ok(number) = row.number_or_none(column) {
                    return format!("{number:?}");
                }
                if let Ok(flag) = row.flag(column) {
                    return format!("{:?}", Some(i64::from(flag)));
                }
                if let Ok(fraction) = row.fraction(column) {
                    return format!("{fraction:?}");
                }
                let bytes = row
                    .text_or_none(column)
                    .map(|text| text.map(String::into_bytes));
                format!(
                    "{:?}",
                    bytes.or_else(|_| row.bytes_or_none(column)).unwrap()
                )
            });
            all.push(format!("{table}: {}", cells.collect::<Vec<_>>().join(" ")));
            Ok(())
        };
        store.rows(table, query, take).await.unwrap();
    }
    all
}

#[tokio::test]
async fn both_databases_have_what_was_written_whatever_it_is() {
    let seed = RandomState::new().hash_one(0);
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start();
    let settings = PostgresSettings::at(&cluster.database("compliance")).unwrap();
    let mut stores = [
        Store::open(folder.path()).unwrap(),
        Store::postgres(&settings).unwrap(),
    ];
    for store in &mut stores {
        assert_eq!(store.connect().await.unwrap(), Found::First);
    }
    let mut drawing = Drawing {
        random: SplitMix::new(seed),
        certificate: identity("n").1,
        version: 0,
        run: 0,
        tokens: Vec::new(),
    };
    let (mut done, mut most) = (0, 0);
    while done < WRITES {
        let count = 1 + drawing.below(12);
        let batch: Vec<Write> = (0..count).map(|_| drawing.write()).collect();
        done += count;
        for store in &mut stores {
            store.commit(&batch).await.unwrap();
        }
        if drawing.below(10) == 0 {
            // All but the last three runs of a node.
            let before = i64::MAX / 2;
            let runs = drawing.run;
            for store in &mut stores {
                store.purge(before, |_, run| run > runs - 3).await.unwrap();
                store.purge_hours(2).await.unwrap();
            }
        }
        let [sqlite, postgres] = &stores;
        let there = all(sqlite).await;
        assert_eq!(all(postgres).await, there);
        most = most.max(there.len());
    }
    assert!(most > 30, "only {most} rows");
    // What is looked up is the same too.
    let [sqlite, postgres] = &mut stores;
    for node in 1..5 {
        let run = sqlite.last_run(node).await.unwrap();
        assert_eq!(postgres.last_run(node).await.unwrap(), run);
        for config_id in [None, Some("c1"), Some("c\0")] {
            let expected = sqlite.expected(node, config_id).await.unwrap();
            assert_eq!(postgres.expected(node, config_id).await.unwrap(), expected);
        }
    }
    let last = sqlite.last_run_numbers().await.unwrap();
    assert_eq!(postgres.last_run_numbers().await.unwrap(), last);
    let inventories = sqlite.inventories(&[1, 2, 3, 4]).await.unwrap();
    assert_eq!(
        postgres.inventories(&[1, 2, 3, 4]).await.unwrap(),
        inventories
    );
    let stored = sqlite.stored().await.unwrap();
    assert_eq!(postgres.stored().await.unwrap(), stored);
    for thing in NAMES {
        let hours = sqlite.hours(thing).await.unwrap();
        assert_eq!(postgres.hours(thing).await.unwrap(), hours);
    }
}
