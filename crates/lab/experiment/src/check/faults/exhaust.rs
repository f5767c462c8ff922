//! What processes are left little of: `exhaust = "db", disk = "0B"`.

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::values::Reader;
use super::Named;
use crate::plan::ScarceResource;
use crate::text::Text;

/// Most descriptors that processes are left: Linux lets a process have no more.
const MOST_DESCRIPTORS: u64 = 1 << 30;
/// What of, by their keys.
const WHAT: [&str; 3] = ["descriptors", "memory", "disk"];

/// What the processes are left little of.
pub(super) fn exhaust(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    named: Named<'_>,
) -> Option<ScarceResource> {
    let given: Vec<Field<'_>> = WHAT.iter().filter_map(|key| fields.get(key)).collect();
    let field = match given[..] {
        [field] => field,
        [] => {
            let message = "what do the processes run out of?";
            let problem = Problem::new(fields.span.clone(), message);
            return reader.refuse(problem.help(
                "add descriptors = 10, memory = \"10MiB\" or disk = \"1MiB\": how much more they may still take",
            ));
        }
        [one, other, ..] => {
            let message = format!("{} and {} are two faults", one.key, other.key);
            let problem = Problem::new(other.span(), message);
            return reader.refuse(problem.help("write a list of two tables"));
        }
    };
    if field.key == "descriptors" {
        return reader
            .count(field, 0..=MOST_DESCRIPTORS)
            .map(ScarceResource::Descriptors);
    }
    let left = reader.quantity(field, "a size such as \"10MiB\"", units::parse_bytes)?;
    if field.key == "memory" {
        return Some(ScarceResource::Memory(left));
    }
    let is_without = |named: &Named<'_>, target: &str| {
        let name = target.rsplit_once('.').map_or(target, |(name, _)| name);
        let mut systems = named.systems.iter().map(|found| &found.system);
        let system = systems.find(|system| [name, target].contains(&&*system.name));
        system.is_some_and(|system| system.disk_bytes.is_none())
    };
    // Who is hit is read elsewhere, and what is wrong with that told there.
    let target = fields.get("exhaust").and_then(|field| {
        let text = Text::at(field.value.get_ref().as_str()?, field.span());
        reader.scope.text(&text, &mut Vec::new())
    });
    if target.is_some_and(|target| is_without(&named, target.as_str())) {
        let problem = Problem::new(
            field.span(),
            "the system has no disk of its own to be filled",
        );
        return reader.refuse(problem.help(
            "give it the key disk = \"64MiB\", and let it write to {disk}; what else it writes to is also this run's, and others'",
        ));
    }
    Some(ScarceResource::Disk(left))
}
