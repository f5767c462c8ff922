//! Continuous compliance: its server, relays and agents, and what administrators do.

mod apply;
pub(crate) mod args;
mod nodes;
mod relays;
mod show;
mod token;

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use compliance::agent::Rates;
use compliance::client::ApiClient;
use compliance::daemon;
use compliance::definitions::Definitions;
use compliance::folder;
use compliance::server::{self, Acceptance};
use http::Method;
use lab_report::terminal::printable;
use lab_store::Outcome;
use serde_json::{Value, json};

use crate::cells::postgres;
use crate::output::{explained, print};
use crate::server::{ended, logger, on_signal, runtime};
use args::{AdminArgs, AgentArgs, ComplianceCommand, ServerArgs};

/// `headroom compliance`.
pub(crate) fn run(command: ComplianceCommand) -> Result<Outcome> {
    let done = runtime()?.block_on(net::local(async {
        match command {
            ComplianceCommand::Server(args) => serve(args).await?,
            ComplianceCommand::Agent(args) => return agent(*args).await,
            ComplianceCommand::Relay(args) => relays::serve(*args).await?,
            ComplianceCommand::Relays(command) => relays::run(&command).await?,
            ComplianceCommand::Check(args) => {
                let all = definitions(&args.folder)?;
                print(&format!("{}\n", apply::how_much(&all)))?;
            }
            ComplianceCommand::Apply(args) => return apply::apply(args).await,
            ComplianceCommand::Nodes(args) => nodes::list(&args).await?,
            ComplianceCommand::Accept(args) => nodes::decide(&args, "accepted").await?,
            ComplianceCommand::Refuse(args) => nodes::decide(&args, "refused").await?,
            ComplianceCommand::Show(args) => show::show(&args).await?,
            ComplianceCommand::Token(command) => token::run(&command).await?,
        }
        Ok(Outcome::Pass)
    }));
    done.map_err(|error| {
        // It may tell what a node calls itself.
        let told = explained(&error);
        let lines: Vec<String> = told.split('\n').map(printable).collect();
        anyhow!("{}", lines.join("\n"))
    })
}

/// A text of an object, as a terminal may show it; empty if there is none.
fn text(object: &Value, key: &str) -> String {
    printable(object[key].as_str().unwrap_or_default())
}

fn client(args: &AdminArgs) -> Result<ApiClient> {
    Ok(ApiClient::of_data(&args.data, args.server.as_deref())?)
}

/// What a folder says; every mistake otherwise.
fn definitions(path: &Path) -> Result<Definitions> {
    let files = folder::load(path)?;
    folder::read(&files).map_err(|problems| {
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("{}", shown.join("\n"))
    })
}

async fn serve(args: ServerArgs) -> Result<()> {
    // Mistakes are shown before anything is opened.
    let first = args.policy.as_deref().map(definitions).transpose()?;
    let logger = logger("compliance", &args.log)?;
    let shutdown = on_signal()?;
    let store = args.store.as_deref();
    let store = store.map(|url| postgres(url, &args.access)).transpose()?;
    let config = server::Config {
        postgres: store,
        acceptance: match args.accept {
            self::args::Acceptance::None => Acceptance::Manual,
            self::args::Acceptance::All => Acceptance::All,
        },
        syslog: args.syslog_listen,
        syslog_receive_buffer: match args.syslog_receive_buffer {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => server::Config::SYSLOG_RECEIVE_BUFFER,
        },
        names: args.names,
        keep_runs: args.keep_runs.unwrap_or(server::Config::KEEP_RUNS),
        keep_history: args.keep_history.unwrap_or(server::Config::KEEP_HISTORY),
        ..server::Config::new(args.listen, &args.data)
    };
    let Some(first) = first else {
        return ended(&logger, server::run(config, logger.clone(), shutdown).await);
    };
    let running = server::start(config, logger.clone()).await?;
    let client = ApiClient::of_data(&args.data, None)?;
    apply::replace(&client, &first).await?;
    let mut shutdown = shutdown;
    shutdown.requested().await;
    ended(&logger, running.stop().await)
}

async fn agent(args: AgentArgs) -> Result<Outcome> {
    let config = daemon::Config {
        server: args.server,
        server_certificate: args.server_cert,
        policy_key: args.policy_key,
        data: args.data,
        root: args.root,
        hostname: args.hostname,
        interval: args.interval,
        force_audit: args.force_audit,
        admin_listen: args.admin_listen,
    };
    if args.once {
        let round = daemon::once(config).await?;
        print(&show::round(&round))?;
        let fine = round.problems.is_empty() && round.config_id.is_some();
        return Ok(if fine { Outcome::Pass } else { Outcome::Fail });
    }
    let logger = logger("compliance-agent", &args.log)?;
    let shutdown = on_signal()?;
    let done = match args.count {
        None => daemon::run(config, logger.clone(), shutdown).await,
        Some(count) => {
            let fleet = daemon::FleetConfig {
                agent: config,
                count,
                seed: args.seed,
                runs: args.runs,
                spool: usize::try_from(args.spool).unwrap_or(daemon::FleetConfig::SPOOL),
                syslog: args.syslog,
                rates: Rates {
                    error: args.errors,
                    non_compliant: args.non_compliant,
                    repaired: args.repaired,
                    not_applicable: args.not_applicable,
                },
            };
            daemon::run_fleet(fleet, logger.clone(), shutdown).await
        }
    };
    ended(&logger, done)?;
    Ok(Outcome::Pass)
}
