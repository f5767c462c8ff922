//! What a proxy without toxics costs: round trips and bytes through it beside a direct
//! connection, by turns, so that both see the same machine. Prints the median of ten pairs.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lab_faults::proxy::{Clients, Jitter, Protocol, Proxy, ProxySettings, Toxic, ToxicKind};

const PAIRS: usize = 10;
const ROUND_TRIPS: u32 = 5_000;
const BYTES: usize = 512 << 20;
const DELAYED: u32 = 50;
const DELAY: Duration = Duration::from_millis(10);

fn main() -> io::Result<()> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(listen)?;
    let direct = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let settings = ProxySettings {
        protocol: Protocol::Tcp,
        listen,
        upstream: direct,
        seed: 1,
        most_connections: 16,
    };
    let proxy = runtime
        .block_on(Proxy::start(settings))
        .map_err(io::Error::other)?;

    let mut found = [const { Vec::new() }; 4];
    for _ in 0..PAIRS {
        found[0].push(round_trip_us(direct, ROUND_TRIPS)?);
        found[1].push(round_trip_us(proxy.address(), ROUND_TRIPS)?);
        found[2].push(gigabytes_per_s(direct)?);
        found[3].push(gigabytes_per_s(proxy.address())?);
    }
    let [direct_us, proxy_us, direct_rate, proxy_rate] = found.map(median);
    println!("round trip of 64 B: direct {direct_us:.1} us, proxy {proxy_us:.1} us");
    println!("bytes one way:      direct {direct_rate:.2} GB/s, proxy {proxy_rate:.2} GB/s");

    let kind = ToxicKind::Delay {
        by: DELAY,
        jitter: Jitter::None,
    };
    let toxic = Toxic {
        name: "delay".into(),
        kind,
        direction: None,
        clients: Clients::All,
    };
    proxy.put(toxic).map_err(io::Error::other)?;
    let delayed = round_trip_us(proxy.address(), DELAYED)?;
    println!("round trip with {DELAY:?} each way: {delayed:.0} us");
    println!(
        "bytes one way with it: {:.2} GB/s",
        gigabytes_per_s(proxy.address())?
    );
    Ok(())
}

/// Answers each message of 64 bytes with itself; one that begins with a 1 announces a stream
/// of bytes, which is answered at its end.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut message = [0; 64];
    let mut buffer = vec![0; 256 << 10];
    loop {
        stream.read_exact(&mut message)?;
        let mut left = if message[0] == 1 { BYTES } else { 0 };
        while left > 0 {
            let most = left.min(buffer.len());
            left -= stream.read(&mut buffer[..most])?;
        }
        stream.write_all(&message)?;
    }
}

fn round_trip_us(to: SocketAddr, count: u32) -> io::Result<f64> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut message = [0; 64];
    let start = Instant::now();
    for _ in 0..count {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

fn gigabytes_per_s(to: SocketAddr) -> io::Result<f64> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let mut message = [0; 64];
    message[0] = 1;
    let buffer = vec![0; 256 << 10];
    let start = Instant::now();
    stream.write_all(&message)?;
    for _ in 0..BYTES / buffer.len() {
        stream.write_all(&buffer)?;
    }
    stream.read_exact(&mut message)?;
    Ok(BYTES as f64 / 1e9 / start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}
