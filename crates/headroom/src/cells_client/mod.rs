//! Commands for people who look at cells and change what runs there, as cfdot has them.

mod args;
mod flags;

use std::ffi::OsString;
use std::io::{self, BufWriter, Stdout, Write as _};
use std::process::ExitCode;

use cells::client::{
    ActualLrPsRequest, ActualLrpGroupsRequest, Failure, Kind, Rows, Spec, TasksRequest,
};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Error, Subcommand as _};

pub(crate) use args::ClientCommand;
use args::{Claim, Release};

use crate::cli::{CellsPart, Cli};
use crate::output::eprint;

/// Runs a command; failures are told.
pub(crate) fn run(command: &ClientCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut out = Output::new();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(net::local(perform(command, &mut out))),
        Err(error) => Err(Failure::Other(format!("start the runtime: {error}"))),
    };
    let done = done.and_then(|()| out.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads on (`| head`): that is no failure.
        Err(_) if out.closed => ExitCode::SUCCESS,
        Err(failure) => {
            // What was found before it is still a result.
            let _ = out.finish();
            eprint(format_args!("Error: {failure}"));
            let advice = match failure {
                Failure::Invalid(_) => usage(),
                _ => failure.advice().map(str::to_owned),
            };
            if let Some(advice) = advice {
                eprint(advice);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// How the command of this process is used.
fn usage() -> Option<String> {
    let words = command_first(std::env::args_os().collect());
    let mut all = Cli::command();
    // Parts get their full names.
    all.build();
    let cells = all.find_subcommand_mut("cells")?;
    let usage = cells.find_subcommand_mut(words.get(2)?)?.render_usage();
    Some(usage.to_string())
}

/// The words with the command before its flags: cfdot takes those also ahead of it.
pub(crate) fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "cells") {
        return words;
    }
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    let mut at = 2;
    while let Some(flag) = text(at).filter(|word| word.starts_with('-')) {
        // The value of any other is the next word.
        let alone = flag.contains('=')
            || !flag.starts_with("--") && flag.len() > 2
            || matches!(
                flag,
                "--skipCertVerify" | "--exclude-actual-lrp-groups" | "-x" | "--help" | "-h" | "--"
            );
        at += if alone { 1 } else { 2 };
    }
    if text(at).is_some_and(ClientCommand::has_subcommand)
        && let Some(ahead) = words.get_mut(2..=at)
    {
        ahead.rotate_right(1);
    }
    words
}

/// Tells what is wrong with words that are no command, if they were meant for one of these, and
/// gives the exit code: 3 for wrong arguments, 255 for a command or a flag that does not exist, or
/// a flag without its value.
pub(crate) fn refuse_words(error: &Error) -> Option<ExitCode> {
    let words = command_first(std::env::args_os().collect());
    let word = |at: usize| words.get(at).map(|word| word.to_string_lossy());
    let command = word(2).filter(|_| word(1).is_some_and(|word| word == "cells"))?;
    if !is_ours(&command) || !error.use_stderr() {
        return None;
    }
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => word.starts_with('-'),
        _ => false,
    };
    let code = match error.kind() {
        ErrorKind::UnknownArgument if flag => 255,
        // What help is asked for is an argument.
        ErrorKind::InvalidSubcommand if command == "help" => 3,
        ErrorKind::InvalidSubcommand => 255,
        // A flag without its value; one that is wrong is of another kind.
        ErrorKind::InvalidValue => 255,
        kind => {
            let lacking = kind == ErrorKind::MissingRequiredArgument;
            if lacking || kind == ErrorKind::UnknownArgument {
                eprint(match &*command {
                    "create-desired-lrp" | "create-task" => "Error: missing spec argument",
                    "update-desired-lrp" => "Error: Missing arguments",
                    _ if lacking => "Error: Missing arguments",
                    _ => "Error: Too many arguments specified",
                });
            }
            3
        }
    };
    let _ = error.print();
    Some(ExitCode::from(code))
}

/// Was a word meant for one of these? One that nothing knows was, as to cfdot.
fn is_ours(word: &str) -> bool {
    ClientCommand::has_subcommand(word) || !CellsPart::has_subcommand(word)
}

async fn perform(command: &ClientCommand, out: &mut Output) -> Result<(), Failure> {
    match command {
        ClientCommand::Domains(asking) => {
            for line in flags::caller(asking)?.domains().await? {
                out.line(&line)?;
            }
            Ok(())
        }
        ClientCommand::SetDomain(args) => {
            named(&args.domain, "No domain given")?;
            let ttl = u32::try_from(args.ttl.as_secs()).map_err(|_| {
                Failure::Invalid("ttl is longer than 4294967295 seconds; 0 means for ever".into())
            })?;
            let caller = flags::caller(&args.asking)?;
            caller.set_domain(&args.domain, ttl).await
        }
        ClientCommand::Cells(asking) => out.rows(&flags::caller(asking)?.cells().await?),
        ClientCommand::Cell(args) => {
            out.rows(&flags::caller(&args.asking)?.cell(&args.cell_id).await?)
        }
        ClientCommand::CellState(args) => {
            let caller = flags::caller(&args.asking)?;
            out.line(&caller.cell_state(&args.cell_id).await?)
        }
        ClientCommand::CellStates(asking) => {
            let caller = flags::caller(asking)?;
            caller.cell_states(&mut |line| out.line_at_once(line)).await
        }
        ClientCommand::DesiredLrps(args) => {
            one_name(&[DOMAIN])?;
            let caller = flags::caller(&args.asking)?;
            out.rows(&caller.desired_lrps(&args.domain).await?)
        }
        ClientCommand::DesiredLrp(args) => {
            let guid = process(&args.process_guid)?;
            out.rows(&flags::caller(&args.asking)?.desired_lrp(guid).await?)
        }
        ClientCommand::DesiredLrpSchedulingInfos(args) => {
            one_name(&[DOMAIN])?;
            let caller = flags::caller(&args.asking)?;
            out.rows(&caller.desired_lrp_scheduling_infos(&args.domain).await?)
        }
        ClientCommand::CreateDesiredLrp(args) => {
            let lrp = Spec::from_argument(&args.spec)?.desired_lrp()?;
            flags::caller(&args.asking)?.create_desired_lrp(lrp).await
        }
        ClientCommand::UpdateDesiredLrp(args) => {
            let update = Spec::from_argument(&args.spec)?.update()?;
            let caller = flags::caller(&args.asking)?;
            caller.update_desired_lrp(&args.process_guid, update).await
        }
        ClientCommand::DeleteDesiredLrp(args) => {
            let guid = process(&args.process_guid)?;
            flags::caller(&args.asking)?.delete_desired_lrp(guid).await
        }
        ClientCommand::ActualLrps(args) => {
            let request = ActualLrPsRequest {
                domain: args.domain.clone(),
                cell_id: args.cell_id.clone(),
                process_guid: args.process_guid.clone(),
                index: args.index,
            };
            out.rows(&flags::caller(&args.asking)?.actual_lrps(&request).await?)
        }
        ClientCommand::RetireActualLrp(args) => {
            let guid = process(&args.process_guid)?;
            let caller = flags::caller(&args.asking)?;
            caller.retire_actual_lrp(guid, args.index).await
        }
        ClientCommand::ActualLrpGroups(args) => {
            eprint("Command \"actual-lrp-groups\" is deprecated, use \"actual-lrps\" instead.");
            let request = ActualLrpGroupsRequest {
                domain: args.domain.clone(),
                cell_id: args.cell_id.clone(),
            };
            let caller = flags::caller(&args.asking)?;
            out.rows(&caller.actual_lrp_groups(&request).await?)
        }
        ClientCommand::ActualLrpGroupsForGuid(args) => {
            eprint(
                "Command \"actual-lrp-groups-for-guid\" is deprecated, use \"actual-lrps\" with the \"--process-guid\" flag instead.",
            );
            let guid = process(&args.process_guid)?;
            let caller = flags::caller(&args.asking)?;
            out.rows(&caller.actual_lrp_groups_for_guid(guid, args.index).await?)
        }
        ClientCommand::Tasks(args) => {
            one_name(&[DOMAIN, ["-c", "--cell-id"]])?;
            let request = TasksRequest {
                domain: args.domain.clone(),
                cell_id: args.cell_id.clone(),
            };
            out.rows(&flags::caller(&args.asking)?.tasks(&request).await?)
        }
        ClientCommand::Task(args) => {
            let guid = task(&args.task_guid)?;
            out.rows(&flags::caller(&args.asking)?.task(guid).await?)
        }
        ClientCommand::CreateTask(args) => {
            let task = Spec::from_argument(&args.spec)?.task()?;
            flags::caller(&args.asking)?.create_task(task).await
        }
        ClientCommand::CancelTask(args) => {
            let guid = task(&args.task_guid)?;
            flags::caller(&args.asking)?.cancel_task(guid).await
        }
        ClientCommand::DeleteTask(args) => {
            // In the words that cfdot has for it.
            let guid = process(&args.task_guid)?;
            flags::caller(&args.asking)?.delete_task(guid).await
        }
        ClientCommand::LrpEvents(args) => {
            let groups = args.exclude_actual_lrp_groups != Some(true);
            if groups {
                eprint(
                    "Event types \"actual_lrp_created\", \"actual_lrp_changed\" and \"actual_lrp_removed\" are deprecated. Use \"--exclude-actual-lrp-groups\" flag to exclude them.",
                );
            }
            let caller = flags::subscriber(&args.bbs)?;
            let mut line = |line: &str| out.line_at_once(line);
            caller.lrp_events(&args.cell_id, groups, &mut line).await
        }
        ClientCommand::TaskEvents(bbs) => {
            let caller = flags::subscriber(bbs)?;
            caller.task_events(&mut |line| out.line_at_once(line)).await
        }
        ClientCommand::Locks(locket) => out.rows(&flags::locket(locket)?.list(Kind::Lock).await?),
        ClientCommand::Presences(locket) => {
            out.rows(&flags::locket(locket)?.list(Kind::Presence).await?)
        }
        ClientCommand::ClaimLock(args) => claim(Kind::Lock, args).await,
        ClientCommand::ClaimPresence(args) => claim(Kind::Presence, args).await,
        ClientCommand::ReleaseLock(args) => release(args).await,
    }
}

async fn claim(kind: Kind, args: &Claim) -> Result<(), Failure> {
    one_name(&[KEY, OWNER, ["-v", "--value"], ["-t", "--ttl"]])?;
    named(&args.key, "key cannot be empty")?;
    named(&args.owner, "owner cannot be empty")?;
    if args.ttl <= 0 {
        let text = "ttl should be an integer greater than zero";
        return Err(Failure::Invalid(text.into()));
    }
    let locket = flags::locket(&args.locket)?;
    let (key, owner, value) = (&args.key, &args.owner, &args.value);
    locket.claim(kind, key, owner, value, args.ttl).await
}

async fn release(args: &Release) -> Result<(), Failure> {
    one_name(&[KEY, OWNER])?;
    named(&args.key, "key cannot be empty")?;
    named(&args.owner, "owner cannot be empty")?;
    let locket = flags::locket(&args.locket)?;
    locket.release(&args.key, &args.owner).await
}

fn process(guid: &str) -> Result<&str, Failure> {
    named(guid, "Process guid should be non empty string")
}

fn task(guid: &str) -> Result<&str, Failure> {
    named(guid, "Missing arguments")
}

/// Both names of a flag.
const DOMAIN: [&str; 2] = ["-d", "--domain"];
const KEY: [&str; 2] = ["-k", "--key"];
const OWNER: [&str; 2] = ["-o", "--owner"];

/// Fails when a flag was given by both of its names, which some commands of cfdot refuse.
fn one_name(flags: &[[&str; 2]]) -> Result<(), Failure> {
    let given = |name: &str| std::env::args_os().any(|word| word == name);
    let mut flags = flags.iter();
    match flags.find(|names| names.iter().all(|name| given(name))) {
        None => Ok(()),
        Some([short, long]) => Err(Failure::Invalid(format!(
            "Only one of {short} and {long} should be passed"
        ))),
    }
}

/// A text, refused when it is empty.
fn named<'a>(text: &'a str, otherwise: &str) -> Result<&'a str, Failure> {
    match text.is_empty() {
        true => Err(Failure::Invalid(otherwise.to_owned())),
        false => Ok(text),
    }
}

/// Standard output, and whether its reader has gone.
struct Output {
    to: BufWriter<Stdout>,
    closed: bool,
}

impl Output {
    fn new() -> Self {
        Self {
            to: BufWriter::with_capacity(1 << 16, io::stdout()),
            closed: false,
        }
    }

    fn rows(&mut self, rows: &Rows) -> Result<(), Failure> {
        for line in rows.lines() {
            self.line(&line?)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        let written = writeln!(self.to, "{line}");
        self.noticed(written)
            .map_err(|error| Failure::Other(format!("print the result: {error}")))
    }

    /// For lines that somebody waits for.
    fn line_at_once(&mut self, line: &str) -> io::Result<()> {
        let written = writeln!(self.to, "{line}").and_then(|()| self.to.flush());
        self.noticed(written)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let written = self.to.flush();
        self.noticed(written)
            .map_err(|error| Failure::Other(format!("print the result: {error}")))
    }

    fn noticed(&mut self, written: io::Result<()>) -> io::Result<()> {
        self.closed |= matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_may_stand_before_their_command() {
        let first = |text: &str| {
            let words = text.split(' ').map(OsString::from).collect();
            let words = command_first(words).into_iter();
            let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
            words.join(" ")
        };
        for (text, expected) in [
            ("h cells --bbs task domains", "h cells domains --bbs task"),
            (
                "h cells --bbs=u -x --timeout 1 lrp-events -c a",
                "h cells lrp-events --bbs=u -x --timeout 1 -c a",
            ),
            ("h cells tasks -d domains", "h cells tasks -d domains"),
            ("h cells --bbs u rep", "h cells --bbs u rep"),
            ("h cells --bbs", "h cells --bbs"),
            ("h load --rate 1 domains", "h load --rate 1 domains"),
        ] {
            assert_eq!(first(text), expected);
        }
    }

    #[test]
    fn words_that_nothing_knows_are_refused_as_cfdot_refuses_them() {
        for ours in ["domains", "retire-actual-lrp", "bogus", "--bogus", ""] {
            assert!(is_ours(ours), "{ours}");
        }
        for part in ["bbs", "rep", "auctioneer", "locket"] {
            assert!(!is_ours(part), "{part}");
        }
    }
}
