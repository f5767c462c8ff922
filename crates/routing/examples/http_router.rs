//! The HTTP data path alone, to be measured: routes that all lead to one backend.
//!
//! `cargo run --release -p routing --example http_router -- LISTEN BACKEND ROUTES [LOG]`
//!
//! Routes are `app-0.example.com` and so on; a request without such a host is refused, so
//! ask for one. With `LOG` an access log is written to that file. One thread.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use routing::http::counters::Counters;
use routing::http::engine::{self, EngineConfig};
use routing::http::settings::HttpSettings;
use routing::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (listen, backend, routes, log) = match arguments.as_slice() {
        [listen, backend, routes] => (listen, backend, routes, None),
        [listen, backend, routes, log] => (listen, backend, routes, Some(PathBuf::from(log))),
        _ => return Err("usage: http_router LISTEN BACKEND ROUTES [LOG]".into()),
    };
    let listen: SocketAddr = listen.parse()?;
    let routes: usize = routes.parse()?;
    let mut settings = HttpSettings {
        listen: Some(listen),
        threads: Some(1),
        ..HttpSettings::default()
    };
    settings.access_log.file = log;
    settings.backends.idle = 1024;
    let table = Table::new(TableSettings::default());
    for index in 0..routes {
        let host = format!("app-{index}.example.com");
        let endpoint = Endpoint {
            identity: backend.as_str().into(),
            app: format!("app-{index}").into(),
            instance_id: format!("instance-{index}").into(),
            instance_index: "0".into(),
            ..Endpoint::default()
        };
        let key = RouteKey::new(&host)?;
        table.register(&key, endpoint, &PoolSettings::default(), 0);
    }
    let settings = Arc::new(settings);
    let counters = Arc::new(Counters::new(engine::threads(&settings)));
    let engine = engine::start(EngineConfig {
        settings,
        table: Arc::new(table),
        counters: Arc::clone(&counters),
        healthy: Arc::new(AtomicBool::new(true)),
    })?;
    println!("listening on {:?}", engine.address());
    let mut before = counters.totals();
    loop {
        std::thread::sleep(Duration::from_secs(5));
        let totals = counters.totals();
        let (requests, turns) = (
            totals.requests - before.requests,
            totals.turns - before.turns,
        );
        if requests > 0 {
            println!(
                "{requests} requests, {:.2} a turn, {} dialed, {:?}",
                requests as f64 / turns.max(1) as f64,
                totals.dialed - before.dialed,
                totals.responses,
            );
        }
        before = totals;
    }
}
