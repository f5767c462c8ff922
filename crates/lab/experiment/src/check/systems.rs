//! `[[system]]`: one process, or several copies of it.

use document::Problem;

use super::entries::Entry;
use super::fields::{Field, Fields};
use super::process::{self, COMMON, Found, check_disk, check_port, command_words};
use super::settings;
use super::values::Reader;
use crate::catalogue::Catalogue;
use crate::names::Place;
use crate::plan::{Program, System, Template};

/// Most copies of one system.
const MOST_COPIES: u64 = 1_000;

/// How many copies a `[[system]]` has, for those that refer to them. `None`: its count is
/// wrong, which is told when the system is read.
pub(super) fn copies(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<u32> {
    let problems = std::mem::take(&mut reader.problems);
    let count = Fields::open_any(entry.value, entry.label, reader).and_then(|fields| {
        fields.value_or("count", 1, |field| reader.count(field, 1..=MOST_COPIES))
    });
    reader.problems = problems;
    count.and_then(|count| u32::try_from(count).ok())
}

/// Reads a `[[system]]`.
pub(super) fn system(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    catalogue: &Catalogue,
) -> Option<Found> {
    let known: Vec<&str> = COMMON.into_iter().chain(["run", "builtin"]).collect();
    let fields = Fields::open(entry.value, entry.label, &known, reader)?;
    let found = process::common(reader, &fields, None);
    let count = fields.value_or("count", 1, |field| reader.count(field, 1..=MOST_COPIES));
    let command = match (fields.get("run"), fields.get("builtin")) {
        (Some(run), None) => {
            if let Some(args) = fields.get("args") {
                let problem = Problem::new(args.span(), "\"args\" goes with \"builtin\"");
                reader.problem(problem.help("put the arguments into \"run\", after the program"));
            }
            let program = reader.program(run, Place::System);
            program.map(|(program, args)| (Program::Path(program), args))
        }
        (None, Some(name)) => builtin(reader, name, fields.get("args"), catalogue),
        (None, None) => {
            let message = format!("{} needs \"run\" or \"builtin\"", entry.label);
            reader.refuse(
                Problem::new(fields.span.clone(), message)
                    .help("run = \"program and arguments\" starts any program"),
            )
        }
        (Some(_), Some(builtin)) => {
            let message = "\"run\" and \"builtin\" exclude each other";
            reader.refuse(Problem::new(builtin.span(), message))
        }
    };
    let (program, args) = command?;
    let mut found = found?;
    found.system = System {
        name: entry.name.clone()?,
        program,
        args,
        ..found.system
    };
    check_port(reader, &fields, &found.system);
    check_disk(reader, &fields, &found.system);
    found.system.count = u32::try_from(count?).ok()?;
    Some(found)
}

fn builtin(
    reader: &mut Reader<'_>,
    name: Field<'_>,
    args: Option<Field<'_>>,
    catalogue: &Catalogue,
) -> Option<(Program, Vec<Template>)> {
    // Read first, so that problems in both are found.
    let words = args.map_or(Some(Vec::new()), |args| reader.command(args, Place::System));
    let text = reader.text(name, "a name of a builtin")?;
    let Some(builtin) = catalogue
        .builtins
        .iter()
        .find(|known| known.command == text.as_str())
    else {
        let known = catalogue
            .builtins
            .iter()
            .map(|builtin| builtin.command.as_str());
        return reader.refuse(reader.unknown(&text, "builtin", "builtins", known));
    };
    let words = words?;
    settings::check_flags(reader, &words, builtin);
    let mut all = command_words(&builtin.command);
    all.extend(words.into_iter().map(|word| word.filled));
    Some((Program::OwnBinary, all))
}
