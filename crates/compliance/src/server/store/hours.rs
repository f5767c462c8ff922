//! Compliance in hours: a row for a thing and an hour.

use commit::StoreError;

use super::{Row, RowError, Store};
use crate::reports::decision::UnixMillis;
use crate::reports::history::{HOUR, HourAggregate};
use crate::reports::level::FleetLevel;
use crate::server::state::HourOf;

const COLUMNS: &str = "begin, thing, known, lowest, highest, weighted, level";

/// Reads an hour, and of what it is.
fn hour(row: &Row<'_>) -> Result<HourOf, RowError> {
    let thing = row.text(1)?;
    let hour = HourAggregate {
        begin: row.number(0)?,
        known: row.number(2)?,
        lowest: row.fraction(3)?,
        highest: row.fraction(4)?,
        weighted: row.fraction(5)?,
        level: FleetLevel::of_counts(serde_json::from_str(&row.text(6)?)?),
    };
    Ok((thing.into(), hour))
}

/// The counts of an hour, as they are kept.
pub(super) fn counts(hour: &HourAggregate) -> String {
    serde_json::json!(hour.level.counts()).to_string()
}

impl Store {
    /// The hours of a thing, from the oldest.
    pub(crate) async fn hours(&mut self, thing: &str) -> Result<Vec<HourAggregate>, StoreError> {
        let mut hours = Vec::new();
        let thing = self.literal(thing);
        let query = format!("SELECT {COLUMNS} FROM history WHERE thing = {thing} ORDER BY begin");
        let take = |row: Row<'_>| {
            hours.push(hour(&row)?.1);
            Ok(())
        };
        self.find("history", &query, take).await?;
        Ok(hours)
    }

    /// The last hour of each thing, if it is not over at this time.
    pub(crate) async fn open_hours(&self, now: UnixMillis) -> Result<Vec<HourOf>, StoreError> {
        let mut open = Vec::new();
        let begin = now.saturating_sub(HOUR - 1);
        let query =
            format!("SELECT {COLUMNS} FROM history WHERE begin >= {begin} ORDER BY begin DESC");
        let take = |row: Row<'_>| {
            open.push(hour(&row)?);
            Ok(())
        };
        self.rows("history", &query, take).await?;
        Ok(open)
    }
}
