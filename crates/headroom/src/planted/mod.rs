//! `headroom planted`: a small server with a flaw that is known, for experiments that say
//! whether the flaw is named.
//!
//! Plain threads and blocking sockets: nothing here is shared with what measures it, nor
//! with the target whose queue is computed.

mod calls;
mod encrypted;
mod flaws;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::cli::{duration, rate};
use calls::Downstream;
use flaws::{Burner, Gate, Kept, Pool};

/// Stacks are small: a thousand connections are a thousand threads.
const STACK_BYTES: usize = 128 << 10;
/// How far a schedule may be behind, until it is given up.
const BEHIND: Duration = Duration::from_secs(1);
/// Longest request that is read.
const REQUEST_BYTES: u64 = 64 << 10;

#[derive(Debug, Args)]
pub(crate) struct PlantedArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// Time that each request takes
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = duration)]
    take: Duration,
    /// Requests that are worked on at once; the others wait
    #[arg(long, value_name = "N")]
    pool: Option<usize>,
    /// Processor time that each request takes of the one thread `burner`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    burn: Option<Duration>,
    /// Stand still so often
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "pause")]
    pause_every: Option<Duration>,
    /// Stand still for so long each time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pause: Option<Duration>,
    /// Keep a descriptor open for each request, until this many are open
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Descriptors that the process may have
    #[arg(long, value_name = "N")]
    descriptors: Option<u64>,
    /// Requests that may wait; further ones are refused
    #[arg(long, value_name = "N", requires = "pool")]
    waiting: Option<usize>,
    /// Close each connection after this many answers
    #[arg(long, value_name = "N")]
    close_after: Option<u64>,
    /// Speak TLS, with a certificate of its own
    #[arg(long)]
    tls: bool,
    /// Let nobody resume a session of TLS
    #[arg(long, requires = "tls")]
    forgetful: bool,
    /// Ask there for each request, before it is answered
    #[arg(long, value_name = "ADDR", requires = "within")]
    ask: Option<SocketAddr>,
    /// Give an answer so much time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<Duration>,
    /// Ask so often, until there is an answer
    #[arg(long, value_name = "N", default_value_t = 1)]
    attempts: u32,
    /// Ask for so many things, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    things: u32,
    /// Open so many connections to ADDR, and keep them
    #[arg(long, value_name = "N", requires = "hold_to")]
    hold: Option<usize>,
    /// Where connections are held
    #[arg(long, value_name = "ADDR", requires = "hold")]
    hold_to: Option<SocketAddr>,
    /// Keep an item of each request, and go over all of them five times a second
    #[arg(long, value_name = "HOW")]
    rounds: Option<Rounds>,
    /// Take datagrams at the same port, each for so long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    datagram: Option<Duration>,
    /// Send datagrams there
    #[arg(long, value_name = "ADDR", requires = "send_rate")]
    send_to: Option<SocketAddr>,
    /// So many a second
    #[arg(long, value_name = "RATE", value_parser = rate)]
    send_rate: Option<f64>,
    /// Write a line of JSON when a request came, began, and ended
    #[arg(long)]
    log: bool,
}

/// How the time of a round follows the number of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rounds {
    /// Each item is looked at once
    Linear,
    /// Each item is compared with every other
    Square,
}

/// Serves until it is killed.
pub(crate) fn serve(args: &PlantedArgs) -> Result<()> {
    // What is planted should be what happens, on a busy machine as well. Only root may.
    let _ = rustix::process::setpriority_process(None, -20);
    if let Some(most) = args.descriptors {
        use nix::sys::resource::{Resource, setrlimit};
        setrlimit(Resource::RLIMIT_NOFILE, most, most).context("limit the descriptors")?;
    }
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("listen on {} (--listen takes another address)", args.listen))?;
    let server = Arc::new(Server {
        take: args.take,
        pool: args.pool.map(|size| Pool::new(size, args.waiting)),
        burner: args.burn.map(Burner::start).transpose()?,
        gate: Gate::default(),
        kept: Kept::up_to(args.keep.unwrap_or(0)),
        close_after: args.close_after.unwrap_or(u64::MAX),
        tls: args
            .tls
            .then(|| encrypted::settings(args.forgetful))
            .transpose()?,
        downstream: args
            .ask
            .zip(args.within)
            .map(|(address, within)| Downstream {
                address,
                within,
                attempts: args.attempts,
                things: args.things,
            }),
        log: args.log,
        requests: AtomicU64::new(0),
    });
    let of = |name: &str| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        builder.name(name.to_owned())
    };
    if let Some((every, length)) = args.pause_every.zip(args.pause) {
        let server = Arc::clone(&server);
        of("pauses").spawn(move || server.gate.close_again_and_again(every, length))?;
    }
    if let Some(how) = args.rounds {
        let server = Arc::clone(&server);
        of("rounds").spawn(move || server.go_round(how))?;
    }
    if let Some(each) = args.datagram {
        let socket = UdpSocket::bind(args.listen).context("take datagrams")?;
        of("datagrams").spawn(move || take_datagrams(&socket, each))?;
    }
    if let Some((to, rate)) = args.send_to.zip(args.send_rate) {
        let socket = UdpSocket::bind("127.0.0.1:0").context("send datagrams")?;
        of("sends").spawn(move || send_datagrams(&socket, to, rate))?;
    }
    if let Some((to, count)) = args.hold_to.zip(args.hold) {
        of("holds").spawn(move || calls::hold(to, count))?;
    }
    loop {
        // Without a descriptor left, nobody can be accepted until one is given back.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let server = Arc::clone(&server);
        // A connection without a thread is closed.
        let _ = of("connection").spawn(move || server.accept(stream));
    }
}

struct Server {
    take: Duration,
    pool: Option<Pool>,
    burner: Option<Burner>,
    gate: Gate,
    kept: Kept,
    close_after: u64,
    tls: Option<Arc<rustls::ServerConfig>>,
    downstream: Option<Downstream>,
    log: bool,
    requests: AtomicU64,
}

impl Server {
    fn accept(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.serve_connection(stream),
            Some(tls) => {
                // Whoever fails to shake hands is gone.
                if let Ok(stream) = encrypted::accept(tls, stream) {
                    self.serve_connection(stream);
                }
            }
        }
    }

    fn serve_connection(&self, stream: impl Read + Write) {
        let mut lines = BufReader::new(stream.take(REQUEST_BYTES));
        let mut line = String::new();
        let mut name = None;
        for answered in 1.. {
            loop {
                line.clear();
                match lines.read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    // The empty line ends a request without a body.
                    Ok(_) if line == "\r\n" => break,
                    Ok(_) => name = calls::name_of(&line).or(name),
                }
            }
            let status = match self.work(name.take()) {
                true => "200 OK",
                false => "503 Service Unavailable",
            };
            let last = answered >= self.close_after;
            let close = if last { "Connection: close\r\n" } else { "" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n{close}\r\nok");
            // The bound is of one request.
            lines.get_mut().set_limit(REQUEST_BYTES);
            let out = lines.get_mut().get_mut();
            if out.write_all(answer.as_bytes()).is_err() || out.flush().is_err() || last {
                return;
            }
        }
    }

    /// Works on a request; `name`: as whoever asks calls it. Says whether it went well.
    fn work(&self, name: Option<String>) -> bool {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let name = name.unwrap_or_else(|| format!("r{number}"));
        self.log_event("request.came", &name);
        let place = match &self.pool {
            None => None,
            Some(pool) => match pool.enter() {
                None => return false,
                place => place,
            },
        };
        self.log_event("request.began", &name);
        thread::sleep(self.take);
        if let Some(burner) = &self.burner {
            burner.burn();
        }
        self.gate.pass();
        self.kept.one_more();
        let answered = self.downstream.as_ref().is_none_or(|it| it.call_all(&name));
        self.log_event("request.ended", &name);
        drop(place);
        answered
    }

    fn log_event(&self, what: &str, name: &str) {
        if self.log {
            write_line(what, &format!(r#","request":"{name}""#));
        }
    }

    /// Goes over all items again and again; each round, and each item, is told.
    fn go_round(&self, how: Rounds) {
        // Time for each item, or pair: of the thread, so that a busy machine adds little.
        let each = match how {
            Rounds::Linear => Duration::from_micros(40),
            Rounds::Square => Duration::from_nanos(60),
        };
        let mut told = 0;
        loop {
            thread::sleep(Duration::from_millis(200));
            let items = self.requests.load(Ordering::Relaxed);
            for item in told..items {
                write_line("item.added", &format!(r#","item":"i{item}""#));
            }
            told = items;
            let times = match how {
                Rounds::Linear => items,
                Rounds::Square => items * items,
            };
            write_line("round.begins", "");
            flaws::burn(each.mul_f64(times as f64));
            write_line("round.ends", "");
        }
    }
}

/// A line of JSON on standard output, which a closed one swallows.
fn write_line(what: &str, more: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = now.map_or(0.0, |now| now.as_secs_f64());
    let line = format!("{{\"time\":{time:.6},\"message\":\"{what}\"{more}}}\n");
    let _ = std::io::stdout().write_all(line.as_bytes());
}

fn take_datagrams(socket: &UdpSocket, each: Duration) {
    let mut buffer = [0; 2048];
    let mut due = Instant::now();
    while socket.recv(&mut buffer).is_ok() {
        // By a schedule: who is woken late on a busy machine takes the next one earlier.
        due = Instant::now()
            .checked_sub(BEHIND)
            .map_or(due, |least| due.max(least))
            + each;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

fn send_datagrams(socket: &UdpSocket, to: SocketAddr, rate: f64) {
    let begun = Instant::now();
    let gap = Duration::from_secs_f64(1.0 / rate.max(1e-3));
    for number in 0_u32.. {
        let due = begun + gap.saturating_mul(number);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Whoever is not there yet misses some.
        let _ = socket.send_to(&[0; 512], to);
    }
}
