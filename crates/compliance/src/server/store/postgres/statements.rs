//! What writes rows: a statement over all rows of a kind.

use commit::postgres::{Column, Statement};

use super::super::words::{ACCESSES, KEYS, STANDINGS, word};
use super::super::{CONFIGURATIONS, CONFIGURATIONS_KEPT, REFUSED, VERSIONS};
use super::rows::{NodeRow, PolicyRow, Rows};

/// What each row has in a column.
fn column<'s, R, T>(rows: impl IntoIterator<Item = R>, of: impl Fn(R) -> T) -> Column<'s>
where
    Column<'s>: From<Vec<T>>,
{
    rows.into_iter().map(of).collect::<Vec<T>>().into()
}

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
        let (with, without): (Vec<&NodeRow<'a>>, Vec<_>) =
            self.nodes.values().partition(|row| row.inventory.is_some());
        macro_rules! put {
            ($more:literal) => {
                concat!(
                    "INSERT INTO nodes (number, id, standing, key_status, certificate, node,
                        received, inventory)
                    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[],
                        $5::bytea[], $6::bytea[], $7::bigint[], $8::bytea[])
                    ON CONFLICT (number) DO UPDATE SET standing = excluded.standing,
                        key_status = excluded.key_status, certificate = excluded.certificate,
                        node = excluded.node, received = excluded.received",
                    $more
                )
            };
        }
        // Without an inventory the one that is there stays.
        let (keep, replace) = (put!(""), put!(", inventory = excluded.inventory"));
        for (text, rows) in [(keep, without), (replace, with)] {
            if rows.is_empty() {
                continue;
            }
            let columns = vec![
                column(&rows, |row| row.record.number),
                column(&rows, |row| row.id.as_bytes()),
                column(&rows, |row| {
                    word(&STANDINGS, &row.record.known.standing).as_bytes()
                }),
                column(&rows, |row| {
                    word(&KEYS, &row.record.known.key_status).as_bytes()
                }),
                column(&rows, |row| row.record.certificate.as_bytes()),
                column(&rows, |row| &row.json[..]),
                column(&rows, |row| row.record.received),
                column(&rows, |row| row.inventory.unwrap_or_default()),
            ];
            all.push(Statement::new(text, columns));
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
            let columns = vec![
                column(rows, |(version, ..)| *version),
                column(rows, |(_, at, _)| *at),
                column(rows, |(.., body)| &body[..]),
            ];
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
        let rows = &self.tokens;
        let columns = vec![
            column(rows, |token| token.id.as_bytes()),
            column(rows, |token| token.name.as_bytes()),
            column(rows, |token| word(&ACCESSES, &token.access).as_bytes()),
            column(rows, |token| &token.hash[..]),
            column(rows, |token| token.created),
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
        let columns = vec![
            nodes.clone().into(),
            config_ids.into(),
            digests.into(),
            column(self.policies.values(), |row| row.record.begin),
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
        let (kept, most) = CONFIGURATIONS;
        let (kept, most) = (vec![kept; nodes.len()], vec![most; nodes.len()]);
        let columns = vec![
            nodes.into(),
            kept.into(),
            column(self.policies.values(), since),
            most.into(),
            column(self.policies.values(), |row| row.run),
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
        let rows = &self.runs;
        let columns = vec![
            column(rows, |(number, ..)| *number),
            column(rows, |(_, node, _)| *node),
            column(rows, |(.., run)| run.start),
            column(rows, |(.., run)| run.received),
            column(rows, |(.., run)| {
                run.config_id.as_deref().map(str::as_bytes)
            }),
            column(rows, |(.., run)| run.whole),
            column(rows, |(.., run)| i64::from(run.reports)),
            column(rows, |(.., run)| &run.message[..]),
            column(rows, |(.., run)| run.signed),
            column(rows, |(.., run)| run.part()),
            column(rows, |(.., run)| run.repeat_digest()),
        ];
        all.push(Statement::new(text, columns));
        let exceptions = rows.iter().flat_map(|(number, _, run)| {
            let all = run.exceptions.iter();
            all.map(move |one| (*number, one))
        });
        let rows: Vec<_> = exceptions.collect();
        if rows.is_empty() {
            return;
        }
        let text = "INSERT INTO exceptions (run, rule, directive, component, key, kind, message)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[],
                $6::bytea[], $7::bytea[])";
        let columns = vec![
            column(&rows, |(run, _)| *run),
            column(&rows, |(_, one)| one.rule.as_bytes()),
            column(&rows, |(_, one)| one.directive.as_bytes()),
            column(&rows, |(_, one)| one.component.as_bytes()),
            column(&rows, |(_, one)| one.key.as_bytes()),
            column(&rows, |(_, one)| one.kind.as_bytes()),
            column(&rows, |(_, one)| one.message.as_bytes()),
        ];
        all.push(Statement::new(text, columns));
    }

    fn put_refused<'s>(&'s self, all: &mut Vec<Statement<'s>>) {
        if self.refused.is_empty() {
            return;
        }
        let text = "INSERT INTO refused (at, name, why, body)
            SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[])";
        let rows = &self.refused;
        let columns = vec![
            column(rows, |one| one.at),
            column(rows, |one| one.name.as_bytes()),
            column(rows, |one| one.why.as_bytes()),
            column(rows, |one| &one.body[..]),
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
        let rows = &self.hours;
        let columns = vec![
            column(rows.keys(), |(thing, _)| thing.as_bytes()),
            column(rows.values(), |(hour, _)| hour.begin),
            column(rows.values(), |(hour, _)| hour.known),
            column(rows.values(), |(hour, _)| hour.lowest),
            column(rows.values(), |(hour, _)| hour.highest),
            column(rows.values(), |(hour, _)| hour.weighted),
            column(rows.values(), |(_, level)| level.as_bytes()),
        ];
        all.push(Statement::new(text, columns));
    }
}
