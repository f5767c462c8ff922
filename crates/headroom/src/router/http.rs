//! `headroom router http`.

use anyhow::{Context, Result};
use routing::http::router::{self, NatsSettings, Router, RouterSettings, Signal};
use routing::http::settings_file;
use telemetry::{Fields, Level, Logger, Sink};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::args::HttpArgs;
use crate::output;
use crate::server::{ended, nice_runtime};

pub(super) fn serve(args: &HttpArgs) -> Result<()> {
    let settings = http_settings(args)?;
    if args.print_settings {
        return output::print(&settings_file::print(&settings));
    }
    let logger = Logger::new(
        "router",
        Sink::stdout().context("start the writer of the log")?,
        settings.log_level,
    )
    .with_times(settings.log_times);
    nice_runtime()?.block_on(net::local(async {
        let signals = signals(args.clone(), logger.clone())?;
        let (running, _) = tokio::sync::watch::channel(Router::default());
        let result = router::run(settings, logger.clone(), signals, running).await;
        ended(&logger, result)
    }))
}

/// Signals that may wait to be taken; more than that say nothing new.
const SIGNALS: usize = 8;

/// The signals of a router. The first drain counts, and every stop.
fn signals(args: HttpArgs, logger: Logger) -> Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(SIGNALS);
    for (kind, meaning) in [
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::user_defined1(), Signal::Drain),
    ] {
        hand_on(kind, sender.clone(), move || meaning.clone())?;
    }
    hand_on(SignalKind::hangup(), sender, move || again(&args, &logger))?;
    Ok(receiver)
}

/// Tells the router what a signal means, each time that it comes.
fn hand_on(
    kind: SignalKind,
    sender: mpsc::Sender<Signal>,
    meaning: impl Fn() -> Signal + Send + 'static,
) -> Result<()> {
    let mut stream = signal(kind).context("watch for signals")?;
    tokio::spawn(net::boxed(async move {
        while stream.recv().await.is_some() {
            if sender.send(meaning()).await.is_err() {
                return;
            }
        }
    }));
    Ok(())
}

/// What SIGHUP means: the settings as their file has them now. One that cannot be read leaves
/// them as they are.
fn again(args: &HttpArgs, logger: &Logger) -> Signal {
    if args.config.is_none() {
        return Signal::Reload;
    }
    match http_settings(args) {
        Ok(settings) => Signal::Settings(Box::new(settings)),
        Err(error) => {
            let cause = format!("{error:#}");
            logger.error("settings-not-reloaded", &cause, Fields::new());
            Signal::Reload
        }
    }
}

/// The settings of the file, and the flags over them.
fn http_settings(args: &HttpArgs) -> Result<RouterSettings> {
    let mut settings = RouterSettings::default();
    if let Some(path) = &args.config {
        let loaded =
            settings_file::load(path).map_err(|problems| anyhow::anyhow!("\n{problems}"))?;
        for warning in &loaded.warnings {
            output::eprint(format_args!("warning: {warning}"));
        }
        settings = loaded.settings;
    }
    settings.http.listen = args.listen.or(settings.http.listen);
    if !args.nats.is_empty() {
        let nats = settings.nats.get_or_insert_with(NatsSettings::default);
        nats.servers.clone_from(&args.nats);
    }
    if args.embedded_nats.is_some() {
        let nats = settings.nats.get_or_insert_with(NatsSettings::default);
        nats.embedded = args.embedded_nats;
        nats.servers.clear();
    }
    if args.routes.is_some() {
        settings.routes_file.clone_from(&args.routes);
    }
    let status = &mut settings.status;
    status.listen = args.status_listen.or(status.listen);
    status.routes_listen = args.routes_listen.or(status.routes_listen);
    settings.metrics_listen = args.metrics_listen.or(settings.metrics_listen);
    settings.http.threads = args.threads.map(usize::from).or(settings.http.threads);
    if args.access_log.is_some() {
        settings.http.access_log.file.clone_from(&args.access_log);
    }
    settings.start_delay = args.start_delay.unwrap_or(settings.start_delay);
    settings.drain.wait = args.drain_wait.unwrap_or(settings.drain.wait);
    settings.log_level = args.log_level.map_or(settings.log_level, Level::from);
    Ok(settings)
}
