//! Processes that are left little of a resource.

use std::collections::BTreeMap;

use lab_faults::scarcity::Lowering;
use lab_faults::undo::{Entry, ProcessId, Resource};

use super::Faults;
use super::copies::Hit;

/// Looks for processes that were started while limits were lowered.
const LOOKS: u32 = 10;

/// Limits that were lowered, with what puts them back.
#[derive(Debug)]
pub(super) struct Exhausted(BTreeMap<u32, (Lowering, Entry)>);

impl Faults<'_> {
    /// Leaves every process of these copies so much more of a resource than it has.
    ///
    /// # Errors
    /// What could not be read, written down or done.
    pub(super) fn exhaust(
        self,
        hit: &Hit<'_>,
        (resource, left): (Resource, u64),
    ) -> Result<Exhausted, String> {
        let mut lowered = BTreeMap::new();
        let mut seen = Vec::new();
        for _ in 0..LOOKS {
            let mut new = hit.processes();
            new.retain(|number| !seen.contains(number));
            if new.is_empty() {
                break;
            }
            for number in new {
                seen.push(number);
                let Some(process) = ProcessId::of(number.cast_signed()) else {
                    continue;
                };
                if let Some(lowering) = Lowering::to_leave(process, resource, left)? {
                    let entry = self.ledger.borrow_mut().record(lowering.undo())?;
                    lowered.insert(number, (lowering, entry));
                    lowering.make()?;
                }
            }
        }
        match lowered.is_empty() {
            false => Ok(Exhausted(lowered)),
            true => Err("no process of them has a limit that could be lowered so far".to_owned()),
        }
    }

    /// Puts the limits back, also those of processes that were started meanwhile; says what was
    /// left to them.
    ///
    /// # Errors
    /// What could not be put back.
    pub(super) fn replenish(self, hit: &Hit<'_>, exhausted: &Exhausted) -> Result<String, String> {
        let all = &exhausted.0;
        let mut left = Vec::new();
        for (lowering, entry) in all.values() {
            left.extend(lowering.left()?.map(|left| show(lowering.resource, left)));
            self.ledger.borrow_mut().undo(*entry)?;
        }
        let mut heirs = 0;
        for number in hit.processes() {
            let process = ProcessId::of(number.cast_signed());
            let Some(process) = process.filter(|_| !all.contains_key(&number)) else {
                continue;
            };
            for (lowering, _) in all.values() {
                if let Some(heir) = lowering.inherited(process)? {
                    heir.undo().perform()?;
                    heirs += 1;
                    break;
                }
            }
        }
        let still = left.len();
        left.sort_unstable();
        left.dedup();
        let mut text = format!("{} processes", all.len());
        if still > 0 {
            text += &format!(", in the end {still} with {} left", left.join(", "));
        }
        if heirs > 0 {
            text += &format!(", and {heirs} that they had started");
        }
        Ok(text)
    }
}

fn show(resource: Resource, left: u64) -> String {
    match resource {
        Resource::Descriptors => left.to_string(),
        Resource::AddressSpace => units::show_bytes(left as f64),
    }
}
