//! `signal` of a step: which signal it sends, and to whom.

use document::Problem;
use toml::de::DeValue;

use super::faults::{Named, SIGNALS, copies};
use super::fields::{Fields, Value};
use super::values::{Reader, all};
use crate::plan::{EndSignal, SentSignal};

/// Most signals of one step.
const MOST: usize = 100;

/// Reads `signal = { system = "web", signal = "HUP" }`, or a list of these.
pub(super) fn signals(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    named: Named<'_>,
) -> Option<Vec<SentSignal>> {
    let Some(field) = step.get("signal") else {
        return Some(Vec::new());
    };
    let values: Vec<&Value<'_>> = match field.value.get_ref() {
        DeValue::Table(_) => vec![field.value],
        DeValue::Array(items) if items.len() <= MOST => items.iter().collect(),
        DeValue::Array(items) => {
            let message = format!("a step sends at most {MOST} signals, not {}", items.len());
            return reader.refuse(Problem::new(field.span(), message));
        }
        _ => {
            let expected = "a table such as { system = \"web\", signal = \"HUP\" }";
            return reader.mismatch(field, expected);
        }
    };
    all(values.into_iter().map(|value| signal(reader, value, named)))
}

fn signal(reader: &mut Reader<'_>, value: &Value<'_>, named: Named<'_>) -> Option<SentSignal> {
    let known = ["system", "signal", "pick"];
    let fields = Fields::open(value, "\"signal\"", &known, reader)?;
    let target = fields
        .require("system", "\"...\", the name of a system", reader)
        .and_then(|field| copies(reader, &fields, field, named));
    let signal = fields
        .require("signal", "\"HUP\"", reader)
        .and_then(|field| {
            let signal = reader.choice(field, &SIGNALS)?;
            if signal != EndSignal::Kill {
                return Some(signal);
            }
            let problem = Problem::new(field.span(), "nobody hears a KILL; it breaks something");
            reader.refuse(problem.help("write fault = { kill = \"NAME\" }, which is undone"))
        });
    let (system, who) = target?;
    Some(SentSignal {
        signal: signal?,
        system,
        who,
    })
}
