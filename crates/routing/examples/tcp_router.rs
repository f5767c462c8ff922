//! The TCP router's data path between one port and one backend, to measure it:
//! `cargo run --release -p routing --example tcp_router -- LISTEN BACKEND [THREADS] [copy]`.
//! `copy` switches splice off. Ends with standard input.

use std::error::Error;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;

use routing::tcp::counters::Counters;
use routing::tcp::engine::{Engine, Port};
use routing::tcp::table::{Capabilities, Effects, Table};
use routing::tcp::{Change, TcpMapping, TcpSettings};
use telemetry::{Level, Logger, Sink};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "expected LISTEN BACKEND [THREADS] [copy]";
    let [listen, backend, rest @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (listen, backend): (SocketAddr, SocketAddr) = (listen.parse()?, backend.parse()?);
    let settings = TcpSettings {
        listen: listen.ip(),
        threads: rest.first().map(|count| count.parse()).transpose()?,
        splice: !rest.iter().any(|word| word == "copy"),
        ..TcpSettings::default()
    };
    let mapping = TcpMapping {
        port: listen.port(),
        backend_ip: backend.ip().to_string(),
        backend_port: backend.port(),
        ..TcpMapping::default()
    };
    let mut table = Table::new(Capabilities::default(), settings.stale_after);
    table.apply(Change::Upsert(mapping), 0, &mut Effects::default());
    let routes = table.port(listen.port()).ok_or("the mapping was skipped")?;
    wire::socket::allow_most_descriptors()?;
    let logger = Logger::new("tcp-router", Sink::stdout()?, Level::Info);
    let engine = Engine::start(&settings, Arc::new(Counters::default()), &logger)?;
    engine.open(&Port::new(listen.port(), routes))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    engine.stop();
    Ok(())
}
