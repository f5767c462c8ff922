//! Pools and limits of the scheduler's programs: a settings file, and flags over it.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use cells::pool::WORKERS_MOST;
use cells::rep::{IdentitySettings, ProcessSettings};
use cells::{auctioneer, bbs};
use clap::Args;
use document::{Form, Problems, Source, parse_toml};

use crate::cli::duration;

/// Most of what is only counted: connections, events, pieces of work that wait.
const COUNT_MOST: usize = 100_000_000;

/// Workers of a BBS.
#[derive(Debug, Args)]
pub(crate) struct BbsWorkers {
    /// Settings of pools and limits, in TOML; flags win over them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Most results of tasks that are sent at once [default: 1000]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    task_callback_workers: Option<usize>,
    /// Most calls to the auctioneer at once, for instances and as many for tasks [default: 1]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    create_workers: Option<usize>,
    /// Most calls to cells at once that stop instances and cancel tasks [default: 256]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    delete_workers: Option<usize>,
    /// Most calls to cells at once that update the routes of instances [default: 256]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    update_workers: Option<usize>,
    /// Most changes of convergence at once, each of up to 256 records [default: 1]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    convergence_workers: Option<usize>,
}

/// Workers of an auctioneer.
#[derive(Debug, Args)]
pub(crate) struct AuctioneerWorkers {
    /// Settings of pools and limits, in TOML; flags win over them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Most calls to cells and to the BBS at once [default: 1000]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    auction_runner_workers: Option<usize>,
}

/// Workers of a rep whose containers are processes.
#[derive(Debug, Args)]
pub(crate) struct RepWorkers {
    /// Settings of pools, in TOML; flags win over them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Processes: most of them that are being started at once [default: 64]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    spawn_workers: Option<usize>,
    /// Processes: most monitor actions at once [default: 64]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    healthcheck_work_pool_size: Option<usize>,
    /// Processes: most downloads at once [default: 5]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    max_concurrent_downloads: Option<usize>,
    /// Processes: most uploads at once [default: 5]
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    max_concurrent_uploads: Option<usize>,
}

/// Certificates of a rep whose containers are processes.
#[derive(Debug, Args)]
pub(crate) struct RepCertificates {
    /// Processes: authority (PEM) of the key and the certificate that each container then has, whose
    /// files CF_INSTANCE_KEY and CF_INSTANCE_CERT name
    #[arg(
        long,
        value_name = "FILE",
        requires = "instance_identity_private_key_path"
    )]
    instance_identity_ca_path: Option<PathBuf>,
    /// Processes: RSA key of this authority (PEM)
    #[arg(long, value_name = "FILE", requires = "instance_identity_ca_path")]
    instance_identity_private_key_path: Option<PathBuf>,
    /// Processes: how long a container's certificate is valid; it is replaced before
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    instance_identity_validity_period: std::time::Duration,
    /// Processes: folder of the certificates that the machine trusts; CF_SYSTEM_CERT_PATH names it to
    /// work with a trusted_system_certificates_path
    #[arg(long, value_name = "DIR")]
    trusted_system_certificates_path: Option<PathBuf>,
}

impl RepCertificates {
    /// Puts what was asked for over the usual.
    pub(crate) fn put(&self, settings: &mut ProcessSettings) {
        let authority = self.instance_identity_ca_path.clone();
        let key = self.instance_identity_private_key_path.clone();
        settings.identity = authority.zip(key).map(|(authority, key)| IdentitySettings {
            authority,
            key,
            validity: self.instance_identity_validity_period,
        });
        let trusted = &self.trusted_system_certificates_path;
        settings.trusted_certificates.clone_from(trusted);
    }
}

/// A number of workers, as a flag has it.
fn workers(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok();
    let number = number.filter(|number| (1..=WORKERS_MOST).contains(number));
    number.ok_or_else(|| format!("expected a number of workers from 1 to {WORKERS_MOST}"))
}

impl BbsWorkers {
    /// Puts what was asked for over the usual.
    pub(crate) fn put(&self, limits: &mut bbs::Limits) -> Result<()> {
        if let Some(path) = &self.config {
            read(path, |form| of_bbs(form, limits))?;
        }
        put(&mut limits.callback_workers, self.task_callback_workers);
        put(&mut limits.create_workers, self.create_workers);
        put(&mut limits.delete_workers, self.delete_workers);
        put(&mut limits.update_workers, self.update_workers);
        put(&mut limits.convergence_workers, self.convergence_workers);
        Ok(())
    }
}

impl AuctioneerWorkers {
    /// Puts what was asked for over the usual.
    pub(crate) fn put(&self, config: &mut auctioneer::Config) -> Result<()> {
        if let Some(path) = &self.config {
            read(path, |form| of_auctioneer(form, config))?;
        }
        put(&mut config.workers, self.auction_runner_workers);
        Ok(())
    }
}

impl RepWorkers {
    /// Puts what was asked for over the usual.
    pub(crate) fn put(&self, settings: &mut ProcessSettings) -> Result<()> {
        if let Some(path) = &self.config {
            read(path, |form| of_rep(form, settings))?;
        }
        put(&mut settings.spawns, self.spawn_workers);
        put(&mut settings.monitors, self.healthcheck_work_pool_size);
        let transfers = &mut settings.transfers;
        put(&mut transfers.downloads, self.max_concurrent_downloads);
        put(&mut transfers.uploads, self.max_concurrent_uploads);
        Ok(())
    }
}

/// Puts what was asked for in the place of the usual.
pub(crate) fn put<T: Copy>(into: &mut T, asked: Option<T>) {
    *into = asked.unwrap_or(*into);
}

fn read(path: &Path, describe: impl FnOnce(&mut Form<'_>)) -> Result<()> {
    let told = |problems: Problems| anyhow!("\n{problems}");
    let source = Source::read(path).map_err(told)?;
    let root = parse_toml(&source).map_err(|problems| told(Problems::of(&source, problems)))?;
    let mut form = Form::reading(&root, path.parent().unwrap_or(Path::new(".")));
    describe(&mut form);
    form.finish(&source).map_err(told)?;
    Ok(())
}

fn of_bbs(form: &mut Form<'_>, limits: &mut bbs::Limits) {
    form.section("pools", "Workers.", |form| {
        let mut pool = |key, about, to: &mut usize| form.within(key, about, 1..=WORKERS_MOST, to);
        let to = &mut limits.callback_workers;
        pool("task_callback_workers", "Results sent at once.", to);
        let to = &mut limits.create_workers;
        pool("create_workers", "Calls to the auctioneer at once.", to);
        let to = &mut limits.delete_workers;
        pool("delete_workers", "Stops and cancellations at once.", to);
        let to = &mut limits.update_workers;
        pool("update_workers", "Updates of instances at once.", to);
        let to = &mut limits.convergence_workers;
        pool("convergence_workers", "Changes of convergence at once.", to);
    });
    form.section("limits", "Bounds.", |form| {
        let mut count = |key, about, to: &mut usize| form.within(key, about, 1..=COUNT_MOST, to);
        let to = &mut limits.connections;
        count("connections", "Connections at once.", to);
        let (key, to) = ("subscriber_events", &mut limits.subscriber_events);
        count(key, "Events that wait for a subscriber.", to);
        form.size("body", "Bytes of a request's body.", &mut limits.body_bytes);
        let to = &mut limits.communication_timeout;
        form.time("communication_timeout", "Longest wait for an answer.", to);
    });
}

fn of_auctioneer(form: &mut Form<'_>, config: &mut auctioneer::Config) {
    form.section("pools", "Workers.", |form| {
        let (key, to) = ("auction_runner_workers", &mut config.workers);
        form.within(key, "Calls at once.", 1..=WORKERS_MOST, to);
    });
    form.section("limits", "Bounds.", |form| {
        let (about, to) = ("Pieces of work that wait.", &mut config.queue_max);
        form.within("queue", about, 1..=COUNT_MOST, to);
        let to = &mut config.cell_state_timeout;
        form.time("cell_state_timeout", "Longest wait for a cell's state.", to);
        let to = &mut config.communication_timeout;
        form.time("communication_timeout", "Longest wait for an answer.", to);
    });
}

fn of_rep(form: &mut Form<'_>, settings: &mut ProcessSettings) {
    form.section("pools", "Workers.", |form| {
        let mut pool = |key, about, to: &mut usize| form.within(key, about, 1..=WORKERS_MOST, to);
        pool("spawn_workers", "Starts at once.", &mut settings.spawns);
        let to = &mut settings.monitors;
        pool("healthcheck_work_pool_size", "Monitors at once.", to);
        let transfers = &mut settings.transfers;
        let to = &mut transfers.downloads;
        pool("max_concurrent_downloads", "Downloads at once.", to);
        let to = &mut transfers.uploads;
        pool("max_concurrent_uploads", "Uploads at once.", to);
    });
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{CellsCommand, CellsPart, Cli, Command};

    fn parsed(flags: &[&str]) -> Result<BbsWorkers, String> {
        let words = ["headroom", "cells", "bbs", "--data", "x"];
        let cli = Cli::try_parse_from(words.iter().chain(flags)).map_err(|it| it.to_string())?;
        let Command::Cells(command) = cli.command else {
            panic!("another command");
        };
        match *command {
            CellsCommand::Part(CellsPart::Bbs(args)) => Ok(args.workers),
            _ => panic!("another part"),
        }
    }

    fn with_file(text: &str, flags: &[&str]) -> Result<bbs::Limits, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bbs.toml");
        std::fs::write(&file, text).unwrap();
        let mut all = vec!["--config", file.to_str().unwrap()];
        all.extend(flags);
        let mut limits = bbs::Limits::default();
        let put = parsed(&all)?.put(&mut limits);
        put.map(|()| limits).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_usual() {
        let text = "[pools]\ncreate_workers = 3\ndelete_workers = 7\n\
                    [limits]\nsubscriber_events = 9\ncommunication_timeout = \"3s\"\n";
        let limits = with_file(text, &["--delete-workers", "8"]).unwrap();
        assert_eq!((limits.create_workers, limits.delete_workers), (3, 8));
        assert_eq!(limits.callback_workers, 1000);
        assert_eq!(limits.subscriber_events, 9);
        assert_eq!(limits.communication_timeout.as_secs(), 3);
    }

    #[test]
    fn pools_of_nothing_or_too_much_are_refused() {
        for bad in ["0", "-1", "10001", "1e3", "many"] {
            for flag in ["--task-callback-workers", "--convergence-workers"] {
                let told = parsed(&[flag, bad]).unwrap_err();
                let expected = "expected a number of workers from 1 to 10000";
                assert!(told.contains(expected) && told.contains(bad), "{told}");
            }
        }
        for bad in ["0", "10001"] {
            let told = with_file(&format!("[pools]\nupdate_workers = {bad}\n"), &[]).unwrap_err();
            let expected = format!("expected a number from 1 to 10000, found {bad}");
            assert!(told.contains(&expected), "{told}");
        }
        let told = with_file("[pools]\nupdate_workers = -1\n", &[]).unwrap_err();
        assert!(told.contains("found -1"), "{told}");
        let told = with_file("[pools]\nupdate_worker = 1\n", &[]).unwrap_err();
        assert!(told.contains("update_workers"), "{told}");
    }

    #[test]
    fn the_others_have_theirs() {
        let mut config = auctioneer::Config::new("127.0.0.1:0".parse().unwrap(), "http://x");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.toml");
        std::fs::write(
            &file,
            "[pools]\nauction_runner_workers = 5\n[limits]\nqueue = 6\n",
        )
        .unwrap();
        read(&file, |form| of_auctioneer(form, &mut config)).unwrap();
        assert_eq!((config.workers, config.queue_max), (5, 6));
        let mut settings = ProcessSettings::default();
        std::fs::write(
            &file,
            "[pools]\nspawn_workers = 2\nmax_concurrent_uploads = 3\n",
        )
        .unwrap();
        read(&file, |form| of_rep(form, &mut settings)).unwrap();
        assert_eq!((settings.spawns, settings.transfers.uploads), (2, 3));
        assert!(read(&folder.path().join("none"), |_| ()).is_err());
    }
}
