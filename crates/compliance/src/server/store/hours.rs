//! Compliance in hours: a row for a thing and an hour.

use commit::StoreError;
use rusqlite::{Row, Transaction, params};

use super::super::state::HourOf;
use super::{PURGED, Store};
use crate::reports::decision::UnixMillis;
use crate::reports::history::HourAggregate;
use crate::reports::level::FleetLevel;

/// Writes hours in the place of what there was of them.
pub(super) fn write(transaction: &Transaction<'_>, hours: &[HourOf]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO history (thing, begin, known, lowest, highest, weighted, level)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (thing, hour) in hours {
        let level = serde_json::json!(hour.level.counts()).to_string();
        let HourAggregate {
            begin,
            known,
            lowest,
            highest,
            weighted,
            ..
        } = hour;
        insert.execute(params![
            thing, begin, known, lowest, highest, weighted, level
        ])?;
    }
    Ok(())
}

/// Reads an hour from the columns after the thing.
fn hour(row: &Row<'_>) -> rusqlite::Result<HourAggregate> {
    let level: String = row.get("level")?;
    let counts = serde_json::from_str(&level).map_err(|error| {
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(6, kind, Box::new(error))
    })?;
    Ok(HourAggregate {
        begin: row.get("begin")?,
        known: row.get("known")?,
        level: FleetLevel::of_counts(counts),
        lowest: row.get("lowest")?,
        highest: row.get("highest")?,
        weighted: row.get("weighted")?,
    })
}

impl Store {
    /// The hours of a thing, from the oldest.
    pub(crate) fn hours(&self, thing: &str) -> rusqlite::Result<Vec<HourAggregate>> {
        self.0.read(|connection| {
            let mut query = connection
                .prepare_cached("SELECT * FROM history WHERE thing = ?1 ORDER BY begin")?;
            query.query_map([thing], hour)?.collect()
        })
    }

    /// The last hour of each thing, if it is not over at this time.
    pub(crate) fn open_hours(&self, now: UnixMillis) -> Result<Vec<HourOf>, StoreError> {
        let mut open = Vec::new();
        let begin = now.saturating_sub(crate::reports::history::HOUR - 1);
        let query = format!("SELECT * FROM history WHERE begin >= {begin} ORDER BY begin DESC");
        self.0.rows("history", &query, |row| {
            let thing: String = row.get("thing")?;
            open.push((thing.into(), hour(row)?));
            Ok(())
        })?;
        Ok(open)
    }

    /// Removes hours that began before this time; says whether there may be more.
    pub(crate) fn purge_hours(&mut self, before: UnixMillis) -> rusqlite::Result<bool> {
        let mut removed = 0;
        let most = i64::try_from(PURGED).unwrap_or(i64::MAX);
        self.0.write(|transaction| {
            let old = "DELETE FROM history WHERE (thing, begin) IN
                (SELECT thing, begin FROM history WHERE begin < ?1 LIMIT ?2)";
            removed = transaction
                .prepare_cached(old)?
                .execute(params![before, most])?;
            Ok(())
        })?;
        Ok(removed == PURGED)
    }
}
