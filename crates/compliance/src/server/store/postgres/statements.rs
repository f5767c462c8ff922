//! What writes rows: a statement over all rows of a kind.

use commit::postgres::Statement;

use super::super::words::{ACCESSES, KEYS, STANDINGS, word};
use super::super::{CONFIGURATIONS, CONFIGURATIONS_KEPT, REFUSED, VERSIONS};
use super::rows::{NodeRow, PolicyRow, Rows};
use crate::reports::history::HourAggregate;
use crate::server::state::{Exception, NodeRecord, RefusedRecord, RunRecord, TokenRecord};

impl<'a> Rows<'a> {
    /// What writes them.
    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let mut all = Vec::new();
        self.put_nodes(&mut all);
        self.put_definitions(&mut all);
        self.put_tokens(&mut all);
        // Before policies: the configuration of a run is kept.
        self.put_runs(&mut all);
        self.put_policies(&mut all);
        self.put_refused(&mut all);
        self.put_hours(&mut all);
        if !self.forgotten.is_empty() {
            for text in [
                "DELETE FROM exceptions
                 WHERE run IN (SELECT number FROM runs WHERE node = ANY($1))",
                "DELETE FROM runs WHERE node = ANY($1)",
                "DELETE FROM configurations WHERE node = ANY($1)",
                "DELETE FROM nodes WHERE number = ANY($1)",
            ] {
                all.push(Statement::new(text, vec![self.forgotten.clone().into()]));
            }
        }
        all
    }

    fn put_nodes<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        let (with, without): (Vec<_>, Vec<_>) =
            self.nodes.values().partition(|row| row.inventory.is_some());
        let columns = |rows: &[&'s NodeRow<'a>]| {
            let number = |of: fn(&NodeRecord) -> i64| -> Vec<i64> {
                rows.iter().map(|row| of(row.record)).collect()
            };
            let bytes = |of: fn(&'s NodeRow<'a>) -> &'s [u8]| -> Vec<&'s [u8]> {
                rows.iter().map(|row| of(row)).collect()
            };
            vec![
                number(|record| record.number).into(),
                bytes(|row| row.id.as_bytes()).into(),
                bytes(|row| word(&STANDINGS, &row.record.known.standing).as_bytes()).into(),
                bytes(|row| word(&KEYS, &row.record.known.key_status).as_bytes()).into(),
                bytes(|row| row.record.certificate.as_bytes()).into(),
                bytes(|row| &row.json).into(),
                number(|record| record.received).into(),
                bytes(|row| row.inventory.unwrap_or_default()).into(),
            ]
        };
        // Without an inventory the one that is there stays.
        let keep = "INSERT INTO nodes (number, id, standing, key_status, certificate, node,
                received, inventory)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[],
                $6::bytea[], $7::bigint[], $8::bytea[])
            ON CONFLICT (number) DO UPDATE SET standing = excluded.standing,
                key_status = excluded.key_status, certificate = excluded.certificate,
                node = excluded.node, received = excluded.received";
        let put = "INSERT INTO nodes (number, id, standing, key_status, certificate, node,
                received, inventory)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[],
                $6::bytea[], $7::bigint[], $8::bytea[])
            ON CONFLICT (number) DO UPDATE SET standing = excluded.standing,
                key_status = excluded.key_status, certificate = excluded.certificate,
                node = excluded.node, received = excluded.received,
                inventory = excluded.inventory";
        for (text, rows) in [(keep, without), (put, with)] {
            if !rows.is_empty() {
                all.push(Statement::new(text, columns(&rows)));
            }
        }
    }

    fn put_definitions<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        for (text, rows) in [
            (
                "INSERT INTO definitions (version, at, body)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])",
                &self.definitions,
            ),
            (
                "INSERT INTO edits (version, at, body)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])",
                &self.edits,
            ),
        ] {
            if rows.is_empty() {
                continue;
            }
            let versions: Vec<i64> = rows.iter().map(|(version, ..)| *version).collect();
            let at: Vec<i64> = rows.iter().map(|(_, at, _)| *at).collect();
            let bodies: Vec<&[u8]> = rows.iter().map(|(.., body)| &body[..]).collect();
            let columns = vec![versions.into(), at.into(), bodies.into()];
            all.push(Statement::new(text, columns));
        }
        if let Some((version, ..)) = self.definitions.last() {
            for text in [
                "DELETE FROM definitions WHERE version < ALL($1)",
                "DELETE FROM edits WHERE version < ALL($1)",
            ] {
                let oldest = vec![version - VERSIONS];
                all.push(Statement::new(text, vec![oldest.into()]));
            }
        }
    }

    fn put_tokens<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if !self.revoked.is_empty() {
            let text = "DELETE FROM tokens WHERE id = ANY($1)";
            all.push(Statement::new(text, vec![self.revoked.clone().into()]));
        }
        if self.tokens.is_empty() {
            return;
        }
        let text = "INSERT INTO tokens (id, name, access, hash, created)
            SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[],
                $5::bigint[])";
        let bytes = |of: fn(&TokenRecord) -> &[u8]| -> Vec<&'s [u8]> {
            self.tokens.iter().map(|token| of(token)).collect()
        };
        let created: Vec<i64> = self.tokens.iter().map(|token| token.created).collect();
        let columns = vec![
            bytes(|token| token.id.as_bytes()).into(),
            bytes(|token| token.name.as_bytes()).into(),
            bytes(|token| word(&ACCESSES, &token.access).as_bytes()).into(),
            bytes(|token| &token.hash).into(),
            created.into(),
        ];
        all.push(Statement::new(text, columns));
    }

    fn put_policies<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if self.policies.is_empty() {
            return;
        }
        let (mut hashes, mut bodies) = (Vec::<&[u8]>::new(), Vec::<&[u8]>::new());
        for row in self.policies.values() {
            if let (Some(served), Some((policy, expected))) = (&row.record.served, &row.hashes) {
                hashes.extend([policy.as_ref(), expected.as_ref()]);
                bodies.extend([&served.document[..], &row.record.expected]);
            }
        }
        let text = "INSERT INTO contents (hash, body)
            SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (hash) DO NOTHING";
        all.push(Statement::new(text, vec![hashes.into(), bodies.into()]));
        let nodes: Vec<i64> = self.policies.keys().copied().collect();
        let bytes = |of: fn(&'s PolicyRow<'a>) -> Option<&'s [u8]>| -> Vec<Option<&'s [u8]>> {
            self.policies.values().map(of).collect()
        };
        let config_ids = bytes(|row| Some(row.record.served.as_ref()?.config_id.as_bytes()));
        let policies = bytes(|row| Some(row.hashes.as_ref()?.0.as_ref()));
        let expected = bytes(|row| Some(row.hashes.as_ref()?.1.as_ref()));
        // The same configuration, made again.
        let text = "UPDATE configurations c SET policy = p.number, expected = e.number
            FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[])
                AS made (node, config_id, policy, expected)
                LEFT JOIN contents p ON p.hash = made.policy
                LEFT JOIN contents e ON e.hash = made.expected
            WHERE c.number = (SELECT max(number) FROM configurations WHERE node = made.node)
                AND c.config_id IS NOT DISTINCT FROM made.config_id";
        let columns = vec![
            nodes.clone().into(),
            config_ids.clone().into(),
            policies.clone().into(),
            expected.clone().into(),
        ];
        all.push(Statement::new(text, columns));
        let text = "INSERT INTO configurations (node, config_id, digest, begin, policy, expected)
            SELECT made.node, made.config_id, made.digest, made.begin, p.number, e.number
            FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[],
                    $6::bytea[]) AS made (node, config_id, digest, begin, policy, expected)
                LEFT JOIN contents p ON p.hash = made.policy
                LEFT JOIN contents e ON e.hash = made.expected
            WHERE NOT EXISTS (SELECT FROM configurations c
                WHERE c.number = (SELECT max(number) FROM configurations WHERE node = made.node)
                    AND c.config_id IS NOT DISTINCT FROM made.config_id)";
        let digests = bytes(|row| Some(&row.record.served.as_ref()?.digest[..]));
        let begins: Vec<i64> = self.policies.values().map(|row| row.record.begin).collect();
        let columns = vec![
            nodes.clone().into(),
            config_ids.into(),
            digests.into(),
            begins.into(),
            policies.into(),
            expected.into(),
        ];
        all.push(Statement::new(text, columns));
        // A configuration ended when the next one began.
        let text = "DELETE FROM configurations c USING unnest($1::bigint[], $2::bigint[],
                $3::bigint[], $4::bigint[], $5::bigint[]) AS made (node, kept, since, most, run)
            WHERE c.node = made.node
                AND c.number <= (SELECT number FROM configurations WHERE node = made.node
                    ORDER BY number DESC OFFSET made.kept LIMIT 1)
                AND (c.number < (SELECT max(number) FROM configurations
                        WHERE node = made.node AND begin < made.since)
                    OR c.number <= (SELECT number FROM configurations WHERE node = made.node
                        ORDER BY number DESC OFFSET made.most LIMIT 1))
                AND c.number IS DISTINCT FROM (SELECT max(k.number) FROM runs r
                    JOIN configurations k ON k.node = made.node AND k.config_id = r.config_id
                    WHERE r.number = made.run)";
        let since = |row: &PolicyRow<'_>| row.record.begin.saturating_sub(CONFIGURATIONS_KEPT);
        let since: Vec<i64> = self.policies.values().map(since).collect();
        let runs: Vec<Option<i64>> = self.policies.values().map(|row| row.run).collect();
        let (kept, most) = CONFIGURATIONS;
        let (kept, most) = (vec![kept; nodes.len()], vec![most; nodes.len()]);
        let columns = vec![
            nodes.into(),
            kept.into(),
            since.into(),
            most.into(),
            runs.into(),
        ];
        all.push(Statement::new(text, columns));
    }

    fn put_runs<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if self.runs.is_empty() {
            return;
        }
        let text = "INSERT INTO runs (number, node, start, received, config_id, whole, reports,
                message, signed, part, digest)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],
                $5::bytea[], $6::boolean[], $7::bigint[], $8::bytea[], $9::boolean[],
                $10::bigint[], $11::bigint[])";
        let number = |of: fn(&(i64, i64, &RunRecord)) -> i64| -> Vec<i64> {
            self.runs.iter().map(of).collect()
        };
        let flag = |of: fn(&RunRecord) -> bool| -> Vec<bool> {
            self.runs.iter().map(|(.., run)| of(run)).collect()
        };
        let runs = self.runs.iter();
        let config_ids: Vec<Option<&[u8]>> = runs
            .clone()
            .map(|(.., run)| run.config_id.as_deref().map(str::as_bytes))
            .collect();
        let messages: Vec<&[u8]> = runs.map(|(.., run)| &run.message[..]).collect();
        let told_by: Vec<Option<i64>> = self.runs.iter().map(|(.., run)| run.told_by()).collect();
        let columns = vec![
            number(|(number, ..)| *number).into(),
            number(|(_, node, _)| *node).into(),
            number(|(.., run)| run.start).into(),
            number(|(.., run)| run.received).into(),
            config_ids.into(),
            flag(|run| run.whole).into(),
            number(|(.., run)| run.reports.into()).into(),
            messages.into(),
            flag(|run| run.signed).into(),
            number(|(.., run)| run.part()).into(),
            told_by.into(),
        ];
        all.push(Statement::new(text, columns));
        let exceptions = self.runs.iter().flat_map(|(number, _, run)| {
            let all = run.exceptions.iter();
            all.map(move |one| (*number, one))
        });
        let (runs, exceptions): (Vec<i64>, Vec<&'s Exception>) = exceptions.unzip();
        if exceptions.is_empty() {
            return;
        }
        let text = "INSERT INTO exceptions (run, rule, directive, component, key, kind, message)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[],
                $6::bytea[], $7::bytea[])";
        let bytes = |of: fn(&Exception) -> &str| -> Vec<&'s [u8]> {
            exceptions.iter().map(|one| of(one).as_bytes()).collect()
        };
        let columns = vec![
            runs.into(),
            bytes(|one| &one.rule).into(),
            bytes(|one| &one.directive).into(),
            bytes(|one| &one.component).into(),
            bytes(|one| &one.key).into(),
            bytes(|one| one.kind).into(),
            bytes(|one| &one.message).into(),
        ];
        all.push(Statement::new(text, columns));
    }

    fn put_refused<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if self.refused.is_empty() {
            return;
        }
        let text = "INSERT INTO refused (at, name, why, body)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[])";
        let bytes = |of: fn(&RefusedRecord) -> &[u8]| -> Vec<&'s [u8]> {
            self.refused.iter().map(|one| of(one)).collect()
        };
        let at: Vec<i64> = self.refused.iter().map(|one| one.at).collect();
        let columns = vec![
            at.into(),
            bytes(|one| one.name.as_bytes()).into(),
            bytes(|one| one.why.as_bytes()).into(),
            bytes(|one| &one.body).into(),
        ];
        all.push(Statement::new(text, columns));
        let text = "DELETE FROM refused USING unnest($1::bigint[]) AS most (kept)
            WHERE number <= (SELECT max(number) FROM refused) - most.kept";
        all.push(Statement::new(text, vec![vec![i64::from(REFUSED)].into()]));
    }

    fn put_hours<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if self.hours.is_empty() {
            return;
        }
        let text = "INSERT INTO history (thing, begin, known, lowest, highest, weighted, level)
            SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::float8[],
                $5::float8[], $6::float8[], $7::bytea[])
            ON CONFLICT (thing, begin) DO UPDATE SET known = excluded.known,
                lowest = excluded.lowest, highest = excluded.highest,
                weighted = excluded.weighted, level = excluded.level";
        let things: Vec<&[u8]> = self
            .hours
            .keys()
            .map(|(thing, _)| thing.as_bytes())
            .collect();
        let levels: Vec<&[u8]> = self
            .hours
            .values()
            .map(|(_, level)| level.as_bytes())
            .collect();
        let number = |of: fn(&HourAggregate) -> i64| -> Vec<i64> {
            self.hours.values().map(|(hour, _)| of(hour)).collect()
        };
        let fraction = |of: fn(&HourAggregate) -> f64| -> Vec<f64> {
            self.hours.values().map(|(hour, _)| of(hour)).collect()
        };
        let columns = vec![
            things.into(),
            number(|hour| hour.begin).into(),
            number(|hour| hour.known).into(),
            fraction(|hour| hour.lowest).into(),
            fraction(|hour| hour.highest).into(),
            fraction(|hour| hour.weighted).into(),
            levels.into(),
        ];
        all.push(Statement::new(text, columns));
    }
}
