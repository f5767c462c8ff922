//! One byte there and back over loopback TCP: the least that a request can take here.
//!
//! A millisecond lies between two exchanges, so that both ends have to wake up, as
//! those of a load do at all but the highest rates.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::CalibrateError;
use super::timer::failed;

/// Time between two exchanges.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Round trips with a client that sleeps while it waits.
pub(crate) fn sleeping(length: Duration) -> Result<Vec<Duration>, CalibrateError> {
    exchanges(length, |client| {
        std::thread::sleep(PAUSE);
        let sent = Instant::now();
        client.write_all(&[1])?;
        client.read_exact(&mut [0])?;
        Ok(sent.elapsed())
    })
}

/// Round trips with a client that never sleeps. The answering end does.
pub(crate) fn spinning(length: Duration) -> Result<Vec<Duration>, CalibrateError> {
    // With one processor the answering end runs only if the client lets it.
    let alone = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
    let wait = move || match alone {
        true => std::thread::yield_now(),
        false => std::hint::spin_loop(),
    };
    exchanges(length, move |client| {
        client.set_nonblocking(true)?;
        let begin = Instant::now();
        while begin.elapsed() < PAUSE {
            wait();
        }
        let sent = Instant::now();
        client.write_all(&[1])?;
        loop {
            match client.read(&mut [0]) {
                Ok(1..) => return Ok(sent.elapsed()),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) if sent.elapsed() > ANSWER_WITHIN => return Err(ErrorKind::TimedOut.into()),
                Err(_) => wait(),
            }
        }
    })
}

fn exchanges(
    length: Duration,
    exchange: impl Fn(&mut TcpStream) -> std::io::Result<Duration>,
) -> Result<Vec<Duration>, CalibrateError> {
    let failed = failed("exchange bytes over loopback");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&failed)?;
    let address = listener.local_addr().map_err(&failed)?;
    let mut client = TcpStream::connect(address).map_err(&failed)?;
    let (server, _) = listener.accept().map_err(&failed)?;
    for end in [&client, &server] {
        end.set_nodelay(true).map_err(&failed)?;
        end.set_read_timeout(Some(ANSWER_WITHIN)).map_err(&failed)?;
    }
    let answering = std::thread::Builder::new().name("ping-pong".into());
    let answering = answering.spawn(move || answer(server)).map_err(&failed)?;
    let begin = Instant::now();
    let mut times = Vec::new();
    let mut done = Ok(());
    while begin.elapsed() < length && done.is_ok() {
        done = exchange(&mut client).map(|time| times.push(time));
    }
    // The answering end sees the end of the stream, and ends.
    drop(client);
    let _ = answering.join();
    done.map(|()| times).map_err(failed)
}

fn answer(mut server: TcpStream) {
    let mut byte = [0];
    while server.read_exact(&mut byte).is_ok() && server.write_all(&byte).is_ok() {}
}
