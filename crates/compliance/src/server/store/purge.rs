//! What is old goes, some of it at a time, so that uploads need not wait for it.

use commit::StoreError;

use super::Store;
use super::look::listed;
use crate::reports::decision::UnixMillis;

/// Rows that one purge removes at most.
const PURGED: usize = 2_000;
/// Runs that one query of a purge looks at.
const LOOKED_AT: usize = 4_096;

impl Store {
    /// Removes runs that came before `before`, but those that are a node's last, and what nothing
    /// refers to any more. Says whether there may be more.
    pub(crate) async fn purge(
        &mut self,
        before: UnixMillis,
        is_last: impl Fn(i64, i64) -> bool,
    ) -> Result<bool, StoreError> {
        let old = self.old_runs(before, is_last).await?;
        let more = old.len() == PURGED;
        let mut statements = Vec::new();
        if !old.is_empty() {
            let old = listed(&old);
            statements.push(format!("DELETE FROM exceptions WHERE run IN ({old})"));
            statements.push(format!("DELETE FROM runs WHERE number IN ({old})"));
        }
        if !more {
            statements.push(
                "DELETE FROM contents WHERE number NOT IN (
                     SELECT policy FROM configurations WHERE policy IS NOT NULL
                     UNION SELECT expected FROM configurations WHERE expected IS NOT NULL)"
                    .to_owned(),
            );
        }
        self.execute(&statements).await?;
        Ok(more)
    }

    /// Runs are numbered as they come: the old ones stand first, behind those that are kept.
    async fn old_runs(
        &mut self,
        before: UnixMillis,
        is_last: impl Fn(i64, i64) -> bool,
    ) -> Result<Vec<i64>, StoreError> {
        let mut old = Vec::new();
        let (mut from, mut ended) = (i64::MIN, false);
        while !ended && old.len() < PURGED {
            let query = format!(
                "SELECT number, node, received FROM runs WHERE number > {from}
                 ORDER BY number LIMIT {LOOKED_AT}"
            );
            let mut found = 0;
            let take = |row: super::Row<'_>| {
                let (run, node, at) = (row.number(0)?, row.number(1)?, row.number(2)?);
                (from, found) = (run, found + 1);
                ended |= at >= before;
                if !ended && old.len() < PURGED && !is_last(node, run) {
                    old.push(run);
                }
                Ok(())
            };
            self.find("runs", &query, take).await?;
            ended |= found < LOOKED_AT;
        }
        Ok(old)
    }

    /// Removes hours that began before this time; says whether there may be more.
    pub(crate) async fn purge_hours(&mut self, before: UnixMillis) -> Result<bool, StoreError> {
        let old = format!("SELECT thing, begin FROM history WHERE begin < {before} LIMIT {PURGED}");
        let mut found = 0;
        let query = format!("SELECT count(*) FROM ({old}) AS old");
        let take = |row: super::Row<'_>| {
            found = row.number(0)?;
            Ok(())
        };
        self.find("history", &query, take).await?;
        if found > 0 {
            let delete = format!("DELETE FROM history WHERE (thing, begin) IN ({old})");
            self.execute(&[delete]).await?;
        }
        Ok(usize::try_from(found).is_ok_and(|found| found == PURGED))
    }
}
