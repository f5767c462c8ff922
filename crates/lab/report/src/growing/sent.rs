//! What has changed of one lifecycle, as it is sent. Nothing is packed: it goes to this machine only, and
//! packing would take longer than sending.

use serde::Serialize;

use super::rows::{NONE, Rows};
use crate::ids;

/// What has become of one lifecycle since somebody looked. Its numbers lie in the bytes that come with it, in
/// this order, as whole numbers of four bytes, the lowest first:
///
/// 1. unless the picture is whole, the places of the rows; of a whole one they are all, from 0 on;
/// 2. for each point the time of each row, -1: none;
/// 3. the group of each row, -1: none;
/// 4. the ids of the first `named` rows as bytes, one after the other; then zeros up to a multiple of four.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Grown {
    pub(crate) name: String,
    pub(crate) points: Vec<String>,
    /// Number `n` is `origin_s + n × unit_s` seconds after the start of the run.
    pub(crate) origin_s: f64,
    pub(crate) unit_s: f64,
    /// How many there are now.
    pub(crate) entities: usize,
    /// It is all of them, and takes the place of what somebody has.
    pub(crate) whole: bool,
    /// How many rows are told.
    pub(crate) rows: usize,
    /// The first so many of them have a new id.
    pub(crate) named: usize,
    /// Hexadecimal digits before, between and behind the dashes of ids that are told by bytes.
    pub(crate) form: Vec<u8>,
    /// Of the rows with a new id the places in what is told of those whose ids are texts, and these.
    pub(crate) odd: Vec<usize>,
    pub(crate) texts: Vec<String>,
    /// Names of groups from this place on.
    pub(crate) groups_from: usize,
    pub(crate) groups: Vec<String>,
    /// Where the numbers begin in the bytes.
    pub(crate) at: usize,
}

impl Grown {
    /// Adds to the bytes what somebody lacks who has the picture of the moment `known`; 0: none.
    pub(super) fn since(lives: &Rows, known: u32, bytes: &mut Vec<u8>) -> Self {
        let whole = known < lives.whole_since;
        let known = if whole { 0 } else { known };
        let later = |place: &usize| lives.changed[*place] > known;
        let is_named = |place: &usize| lives.named[*place] > known;
        let (mut rows, others): (Vec<usize>, Vec<usize>) =
            (0..lives.len()).filter(later).partition(is_named);
        let named = rows.len();
        rows.extend(others);
        let groups_from = lives.groups.partition_point(|(_, stamp)| *stamp <= known);
        let at = bytes.len();
        bytes.reserve(4 * rows.len() * (lives.points.len() + 7));
        if !whole {
            bytes.extend(rows.iter().flat_map(|place| (*place as u32).to_le_bytes()));
        }
        times(lives, &rows, bytes);
        let group = |place: &usize| lives.group[*place].to_le_bytes();
        bytes.extend(rows.iter().flat_map(group));
        let (mut odd, mut texts) = (Vec::new(), Vec::new());
        for (place, row) in rows[..named].iter().enumerate() {
            if !ids::push_bytes(&lives.ids[*row], &lives.form, bytes) {
                odd.push(place);
                texts.push(lives.ids[*row].to_string());
            }
        }
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Self {
            name: lives.name().to_owned(),
            points: lives.points.clone(),
            origin_s: lives.origin_ns as f64 / 1e9,
            unit_s: lives.unit_ns as f64 / 1e9,
            entities: lives.len(),
            whole,
            rows: rows.len(),
            named,
            form: lives.form.clone(),
            odd,
            texts,
            groups_from,
            groups: lives.groups[groups_from..]
                .iter()
                .map(|(name, _)| name.to_string())
                .collect(),
            at,
        }
    }
}

/// For each point the time of each row.
fn times(lives: &Rows, rows: &[usize], bytes: &mut Vec<u8>) {
    let (at, column) = (bytes.len(), 4 * rows.len());
    bytes.resize(at + column * lives.points.len(), 0);
    let (origin, unit) = (lives.origin_ns, lives.unit_ns);
    // Times and origins are nanoseconds of one run: 64 bits hold their differences, but for clocks that are
    // wrong by centuries, whose numbers need the wider ones.
    let narrow = i64::try_from(origin).ok().zip(i64::try_from(unit).ok());
    for (k, row) in rows.iter().enumerate() {
        for (point, ns) in lives.times(*row).iter().enumerate() {
            let number = match (*ns, narrow) {
                (lab_lifecycle::NOT_SEEN, _) => NONE,
                (ns, Some((origin, unit))) => match ns.checked_sub(origin) {
                    Some(since) => (since / unit) as u32,
                    None => ((i128::from(ns) - i128::from(origin)) / i128::from(unit)) as u32,
                },
                (ns, None) => ((i128::from(ns) - origin) / unit) as u32,
            };
            bytes[at + point * column + 4 * k..][..4].copy_from_slice(&number.to_le_bytes());
        }
    }
}
