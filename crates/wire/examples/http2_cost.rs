//! What a request over HTTP/2 costs, against a server of `h2` on a thread of its own:
//! `cargo run --release -p wire --example http2_cost -- [REQUESTS] [STREAMS] [BODY]`.
//! With an address as a fourth argument, against that server instead. With 0 requests it
//! only serves, for other clients to be compared: `h2load -n 300000 -c 1 -m 32 URL`.

use std::error::Error;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use wire::http2::{ClientSettings, Exchanges};
use wire::stream::Stream;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests: u64 = arguments.next().map_or(Ok(300_000), |text| text.parse())?;
    let streams: usize = arguments.next().map_or(Ok(32), |text| text.parse())?;
    let body: usize = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let address = match arguments.next() {
        Some(address) => address.parse()?,
        None => serve(body)?,
    };

    if requests == 0 {
        println!("http://{address}/");
        loop {
            std::thread::park();
        }
    }

    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let watched = stream.try_clone()?;
    let settings = ClientSettings {
        streams,
        ..ClientSettings::default()
    };
    let mut connection = Exchanges::start(Stream::Plain(stream.into()), settings);
    let request = Request::get(format!("http://{address}/")).body(())?;

    let (wall, cpu) = (Instant::now(), thread_cpu());
    let (mut sent, mut done, mut bytes) = (0, 0, 0);
    loop {
        connection.drive(true)?;
        for (_, answer) in connection.finished() {
            bytes += answer?.body_bytes;
            done += 1;
        }
        if done == requests {
            break;
        }
        if sent < requests && connection.can_send() {
            while sent < requests && connection.can_send() {
                connection.send(request.clone(), Bytes::new(), 0)?;
                sent += 1;
            }
            connection.drive(false)?;
        }
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, connection.wants_write());
        poll(&mut [PollFd::new(&watched, wanted)], None)?;
    }
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), thread_cpu() - cpu);
    println!(
        "{requests} requests, {streams} streams, {} bytes each: {:.2} us of CPU a request, {:.0} requests/s",
        bytes / requests.max(1),
        cpu * 1e6 / requests as f64,
        requests as f64 / wall
    );
    Ok(())
}

/// Processor time of this thread in seconds.
fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn serve(body: usize) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = Bytes::from(vec![b'x'; body]);
    std::thread::spawn(move || {
        let served: std::io::Result<()> = runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                let (socket, _) = listener.accept().await?;
                let body = body.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(socket, body).await {
                        eprintln!("a connection broke: {error}");
                    }
                });
            }
        });
        if let Err(error) = served {
            eprintln!("the server stopped: {error}");
        }
    });
    Ok(address)
}

async fn answer(socket: tokio::net::TcpStream, body: Bytes) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(socket).await?;
    while let Some(request) = connection.accept().await {
        let (_, mut respond) = request?;
        respond
            .send_response(Response::new(()), false)?
            .send_data(body.clone(), true)?;
    }
    Ok(())
}
