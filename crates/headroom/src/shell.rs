//! What shells and `man` are told about the commands, made from the command line itself.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::output::print;

/// `headroom completions`.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    print(&script(shell))
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(&Cli::command()), "headroom", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// A command without what is not for people: a script would offer that as well.
fn shown(command: &Command) -> Command {
    // Names live as long as the program, which ends when the script is printed.
    let name: &'static str = Box::leak(command.get_name().to_owned().into_boxed_str());
    let arguments = command.get_arguments().filter(|one| !one.is_hide_set());
    let parts = command.get_subcommands().filter(|one| !one.is_hide_set());
    let about = command.get_about().cloned().unwrap_or_default();
    Command::new(name)
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments.cloned())
        .subcommands(parts.map(shown))
}

/// `headroom man`.
pub(crate) fn man(args: &ManArgs) -> Result<()> {
    match &args.out {
        Some(folder) => pages(folder),
        None => page(&args.command),
    }
}

fn page(words: &[String]) -> Result<()> {
    // Parts get their full names.
    let mut root = Cli::command();
    root.build();
    let mut command = &root;
    for word in words {
        command = command
            .find_subcommand(word)
            .ok_or_else(|| anyhow!("headroom {} is no command", words.join(" ")))?;
    }
    let mut text = Vec::new();
    Man::new(command.clone())
        .render(&mut text)
        .context("write the page")?;
    print(&String::from_utf8_lossy(&text))
}

fn pages(folder: &Path) -> Result<()> {
    let writing = || format!("write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(writing)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(writing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_that_is_hidden_is_left_however_deep() {
        fn hidden(command: &Command) -> usize {
            let parts = command.get_subcommands();
            let own = usize::from(command.is_hide_set());
            own + parts.map(hidden).sum::<usize>()
        }
        assert!(hidden(&Cli::command()) > 3);
        assert_eq!(hidden(&shown(&Cli::command())), 0);
    }

    #[test]
    fn scripts_offer_what_people_may_call_and_nothing_else() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for word in ["planted", "reaper", "guardian"] {
                assert!(!script.contains(word), "{shell} offers {word}");
            }
            for word in ["completions", "analyse", "junit", "page-port"] {
                assert!(script.contains(word), "{shell} has no {word}");
            }
        }
    }
}
