//! Runs a part of the container scheduler until it is asked to stop.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use cells::bbs::locket;
use cells::rep::{Capacity, ExecutorKind, ProcessSettings, Simulation, TransferSettings};
use cells::{auctioneer, bbs, rep, route_emitter};
use net::tls::Files;
use telemetry::Logger;
use tokio::io::BufReader;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{AuctioneerArgs, BbsArgs, CellsPart, Executor, RepArgs, StoreAccess, TlsArgs};
use crate::server::{ended, logger, on_signal, runtime};
use crate::{cells_auction_sim, cells_benchmark, cells_certs, cells_route_emitter};

/// Serves until SIGTERM or SIGINT.
pub(crate) fn serve(part: CellsPart) -> Result<()> {
    runtime()?.block_on(net::local(async {
        match part {
            CellsPart::Driver => drive().await,
            CellsPart::Certs(args) => cells_certs::make(&args),
            CellsPart::AuctionSim(args) => cells_auction_sim::simulate(&args),
            CellsPart::BenchmarkBbs(args) => cells_benchmark::measure(&args).await,
            CellsPart::Bbs(args) => {
                let logger = logger("bbs", &args.log)?;
                let result = bbs::run(bbs_config(&args)?, logger.clone(), on_signal()?).await;
                ended(&logger, result)
            }
            CellsPart::Auctioneer(args) => {
                let logger = logger("auctioneer", &args.log)?;
                let config = auctioneer_config(&args)?;
                let result = auctioneer::run(config, logger.clone(), on_signal()?).await;
                ended(&logger, result)
            }
            CellsPart::Locket(args) => {
                let logger = logger("locket", &args.log)?;
                let store = args.store.as_deref();
                let config = locket::Config {
                    listen: args.listen,
                    data_dir: args.data.clone().unwrap_or_default(),
                    postgres: store.map(|url| postgres(url, &args.access)).transpose()?,
                    tls: files(&args.tls),
                };
                let result = locket::run(config, logger.clone(), on_signal()?).await;
                ended(&logger, result)
            }
            CellsPart::RouteEmitter(args) => {
                let logger = logger("route-emitter", &args.log)?;
                let config = cells_route_emitter::config(&args)?;
                let result = route_emitter::run(config, logger.clone(), on_signal()?).await;
                ended(&logger, result)
            }
            CellsPart::Rep(args) => {
                let logger = logger("rep", &args.log)?;
                ended(&logger, cells_at_work(&args, logger.clone()).await)
            }
        }
    }))
}

/// Runs cells until they are asked to stop, or have been evacuated, which SIGUSR1 asks for.
async fn cells_at_work(args: &RepArgs, logger: Logger) -> Result<()> {
    let mut evacuate = signal(SignalKind::user_defined1()).context("watch for SIGUSR1")?;
    let cells = rep::start(rep_config(args)?, logger, on_signal()?).await?;
    let evacuation = cells.evacuation();
    let asked = async {
        if evacuate.recv().await.is_some() {
            evacuation.begin();
        }
        // The cells end by themselves when they are empty.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = asked => {}
        () = cells.stopped() => {}
    }
    Ok(())
}

/// Speaks with the laboratory until it closes our input, or kills us.
async fn drive() -> Result<()> {
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let output = std::io::stdout().as_fd().try_clone_to_owned();
    let no_pipe = "use standard input and output as pipes, as an experiment does";
    let input = input.and_then(Receiver::from_owned_fd).context(no_pipe)?;
    let output = output.and_then(Sender::from_owned_fd).context(no_pipe)?;
    let served = cells::driver::run(BufReader::new(input), output).await;
    served.context("speak with the laboratory")
}

pub(crate) fn files(args: &TlsArgs) -> Option<Files> {
    Some(Files {
        certificate: args.tls_cert.clone()?,
        key: args.tls_key.clone()?,
        authority: args.tls_ca.clone()?,
    })
}

fn bbs_config(args: &BbsArgs) -> Result<bbs::Config> {
    ensure!(
        !args.converge_repeat_interval.is_zero(),
        "--converge-repeat-interval must be above 0"
    );
    let folder = args.data.clone().unwrap_or_default();
    let mut config = bbs::Config::new(args.listen, folder);
    config.postgres = args
        .store
        .as_deref()
        .map(|url| postgres(url, &args.access))
        .transpose()?;
    let keys = args.encryption_keys.as_deref();
    let keys = keys.map(bbs::EncryptionKeys::read).transpose();
    config.encryption = keys.context("use --encryption-keys")?;
    config.auctioneer_url = args.auctioneer.clone();
    config.server_tls = files(&args.tls);
    config.client_tls = files(&args.tls);
    config.locket_listen = args.locket_listen;
    config.empty_cells_are_lost = args.empty_cells_are_lost;
    config.old_clients = args.old_clients;
    config.standby = args.standby;
    config.limits.converge_interval = args.converge_repeat_interval;
    config.limits.whole_pass_every = args.converge_whole_every;
    args.workers.put(&mut config.limits)?;
    Ok(config)
}

/// The database at an address that a person gave.
pub(crate) fn postgres(url: &str, args: &StoreAccess) -> Result<bbs::PostgresSettings> {
    let settings = bbs::PostgresSettings::at(url).context("read --store");
    let mut settings = settings?;
    let password = match &args.store_password {
        Some(file) => {
            let reading = || format!("read the password of --store from {}", file.display());
            let text = std::fs::read_to_string(file).with_context(reading)?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => std::env::var("PGPASSWORD").ok(),
    };
    if let Some(password) = password {
        settings.config.password(password);
    }
    settings.authority.clone_from(&args.store_ca);
    Ok(settings)
}

fn auctioneer_config(args: &AuctioneerArgs) -> Result<auctioneer::Config> {
    for (name, weight) in [
        ("starting-container-weight", args.starting_container_weight),
        ("bin-pack-first-fit-weight", args.bin_pack_first_fit_weight),
    ] {
        ensure!(
            weight.is_finite() && weight >= 0.0,
            "--{name} must be a number of at least 0, found {weight}"
        );
    }
    let mut config = auctioneer::Config::new(args.listen, &*args.bbs);
    config.server_tls = files(&args.tls);
    config.client_tls = files(&args.tls);
    config.round_interval = args.round_interval;
    config.placement.starting_weight = args.starting_container_weight;
    config.placement.starting_max = args.starting_container_count_maximum;
    config.placement.first_fit_weight = args.bin_pack_first_fit_weight;
    config.standby = args.standby;
    args.workers.put(&mut config)?;
    Ok(config)
}

fn rep_config(args: &RepArgs) -> Result<rep::Config> {
    // The BBS takes no cell without room.
    for (name, found) in [
        ("capacity-containers", args.capacity_containers),
        ("capacity-memory", args.capacity_memory.of_memory()?.0),
    ] {
        ensure!(found > 0, "--{name} must be at least 1, found {found}");
    }
    let processes = processes(args)?;
    let executor = match args.executor {
        Executor::Simulated => ExecutorKind::Simulated(Simulation {
            create: args.delays_create,
            start: args.delays_start,
            run: args.delays_run,
            stop: args.delays_stop,
            fail_create: args.fail_create,
            fail_run: args.fail_run,
            check: args.delays_check,
            fail_check: args.fail_check,
        }),
        Executor::Process => ExecutorKind::Process(processes),
    };
    Ok(rep::Config {
        id_prefix: args.id_prefix.clone(),
        admin_listen: args.admin_listen,
        advertise: args.advertise,
        server_tls: files(&args.tls),
        client_tls: files(&args.tls),
        heartbeat: args.heartbeat,
        presence_ttl: args.presence_ttl,
        bulk_interval: args.polling_interval,
        evacuation_interval: args.evacuation_polling_interval,
        evacuation_timeout: args.evacuation_timeout,
        zones: args.zones,
        preloaded: args.preloaded.clone(),
        placement_tags: args.placement_tags.clone(),
        optional_placement_tags: args.optional_placement_tags.clone(),
        capacity: Capacity {
            containers: args.capacity_containers,
            memory: args.capacity_memory.of_memory()?,
            disk: args.capacity_disk.of_disk(args.containers.as_deref())?,
        },
        executor,
        seed: args.seed,
        ..rep::Config::new(args.count, args.listen, &*args.bbs)
    })
}

fn processes(args: &RepArgs) -> Result<ProcessSettings> {
    let mut settings = ProcessSettings {
        root: args.containers.clone(),
        reaper: vec![own_program()?.into(), "reaper".into()],
        create: args.delays_create,
        grace: args.graceful_shutdown_interval,
        healthy_interval: args.healthy_monitoring_interval,
        unhealthy_interval: args.unhealthy_monitoring_interval,
        networks: args.networks as usize,
        limits: args.limits,
        log_lines_per_second: args.max_log_lines_per_second,
        transfers: TransferSettings {
            cache_bytes: u64::try_from(args.max_cache_size.0).unwrap_or(0) << 20,
            authorities: args.download_ca.clone(),
            ..TransferSettings::default()
        },
        ..ProcessSettings::default()
    };
    args.certificates.put(&mut settings);
    args.workers.put(&mut settings)?;
    Ok(settings)
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe().context("find this program, which ends what a killed rep leaves")
}
