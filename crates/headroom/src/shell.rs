//! What shells and `man` are told about the commands, made from the command line itself.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::output::print;

/// `headroom completions`.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "headroom", &mut script);
    print(&String::from_utf8_lossy(&script))
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
