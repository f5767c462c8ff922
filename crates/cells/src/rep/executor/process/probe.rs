//! Checks of a container from outside, in the words of Diego's healthcheck.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use net::{Client, ClientOptions};
use nix::errno::Errno;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::super::super::steps::Check;

/// How often another path may be named.
const REDIRECTS: usize = 10;

/// Makes the check at `address`, where `port` is what stands for the container's.
pub(super) async fn run_check(address: &str, port: u16, check: &Check) -> Result<(), String> {
    match &check.path {
        None => tcp(address, port, check).await,
        Some(path) => http(address, port, path, check).await,
    }
}

async fn tcp(address: &str, port: u16, check: &Check) -> Result<(), String> {
    // What is told is the port that whoever owns the container knows.
    let shown = format!("{}:{}", bracketed(address), check.port);
    let failed = format!("failed to make TCP connection to {shown}");
    match timeout(check.within, TcpStream::connect((address, port))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(cause)) => Err(format!(
            "{failed}: dial tcp {shown}: connect: {}",
            go_error_text(&cause)
        )),
        Err(_) => Err(format!("{failed}: {}", timed_out(check.within))),
    }
}

async fn http(address: &str, port: u16, path: &str, check: &Check) -> Result<(), String> {
    let failed = |why: &str| {
        let port = check.port;
        format!("failed to make HTTP request to '{path}' on port {port}: {why}")
    };
    let no_request = || {
        let port = check.port;
        format!("failed to create an HTTP request to '{path}' on port {port}")
    };
    let began = Instant::now();
    let mut url: Url = format!("http://{}:{port}{path}", bracketed(address))
        .parse()
        .map_err(|_| no_request())?;
    let client = Client::new(ClientOptions {
        connect_within: check.within,
        ..ClientOptions::default()
    });
    for _ in 0..=REDIRECTS {
        let left = || check.within.saturating_sub(began.elapsed());
        let request = Request::get(url.as_str())
            .header("user-agent", "diego-healthcheck")
            .header("x-forwarded-proto", "https")
            .body(Empty::<Bytes>::new())
            .map_err(|_| no_request())?;
        let answer = match timeout(left(), client.open(request)).await {
            Err(_) => return Err(failed(&timed_out(check.within))),
            // Whatever it was: Diego's check says so of every failure.
            Ok(Err(_)) => return Err(failed("connection refused")),
            Ok(Ok(answer)) => answer,
        };
        let status = answer.status().as_u16();
        let location = answer.headers().get("location");
        let location = location.and_then(|location| location.to_str().ok());
        let next = location.and_then(|location| url.join(location).ok());
        let own = |next: &Url| next.origin() == url.origin();
        let moved = matches!(status, 301 | 302 | 303 | 307 | 308);
        if let Some(next) = next.filter(|next| moved && own(next)) {
            url = next;
            continue;
        }
        let took = began.elapsed().as_millis();
        // Read only so that nobody hangs up on its sender: what becomes of it says nothing, as with
        // Diego's check.
        let mut body = answer.into_body();
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = timeout(left(), rest).await;
        return match status {
            200 => Ok(()),
            _ => Err(failed(&format!(
                "received status code {status} in {took}ms"
            ))),
        };
    }
    // So it is said of every other failure.
    Err(failed("connection refused"))
}

fn timed_out(within: Duration) -> String {
    format!("timed out after {:.2} seconds", within.as_secs_f64())
}

fn bracketed(address: &str) -> String {
    match address.contains(':') {
        true => format!("[{address}]"),
        false => address.to_owned(),
    }
}

/// What the system said, as Go has it.
fn go_error_text(cause: &io::Error) -> String {
    match (cause.kind(), cause.raw_os_error()) {
        (ErrorKind::HostUnreachable, _) => "no route to host".into(),
        (_, Some(number)) => {
            let text = Errno::from_raw(number).desc();
            let mut letters = text.chars();
            let first = letters.next().map(|letter| letter.to_ascii_lowercase());
            first.into_iter().chain(letters).collect()
        }
        (_, None) => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    fn check(port: u16, path: Option<&str>) -> Check {
        Check {
            port,
            path: path.map(Into::into),
            within: Duration::from_secs(60),
            every: None,
        }
    }

    /// Answers each request by its path; one that it does not know it leaves open.
    async fn server() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..read]).into_owned();
                let head = match text.split(' ').nth(1) {
                    Some("/good") if text.contains("user-agent: diego-healthcheck") => "200 OK",
                    Some("/moved") => "302 Found\r\nlocation: /good",
                    Some("/away") => "302 Found\r\nlocation: http://192.0.2.1/good",
                    Some("/round") => "302 Found\r\nlocation: /round",
                    Some("/bad") => "503 Bad",
                    Some("/cut") => continue,
                    Some("/half") => {
                        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
                        let _ = stream.write_all(half).await;
                        continue;
                    }
                    _ => {
                        open.push(stream);
                        continue;
                    }
                };
                let answer =
                    format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        port
    }

    #[tokio::test]
    async fn answers_are_told_apart() {
        let port = server().await;
        let asked = async |path| run_check("127.0.0.1", port, &check(8080, Some(path))).await;
        assert_eq!(asked("/good").await, Ok(()));
        assert_eq!(asked("/moved").await, Ok(()));
        assert_eq!(asked("/half").await, Ok(()));
        let failed = "failed to make HTTP request to";
        let error = asked("/bad").await.unwrap_err();
        let expected = format!("{failed} '/bad' on port 8080: received status code 503 in ");
        assert!(error.starts_with(&expected), "{error}");
        let error = asked("/away").await.unwrap_err();
        assert!(error.contains("received status code 302"), "{error}");
        for path in ["/cut", "/round"] {
            let expected = format!("{failed} '{path}' on port 8080: connection refused");
            assert_eq!(asked(path).await, Err(expected));
        }
        let short = Check {
            within: Duration::from_millis(20),
            ..check(8080, Some("/open"))
        };
        let expected = format!("{failed} '/open' on port 8080: timed out after 0.02 seconds");
        assert_eq!(run_check("127.0.0.1", port, &short).await, Err(expected));
        let expected = "failed to create an HTTP request to ' no' on port 8080";
        assert_eq!(asked(" no").await, Err(expected.into()));
    }

    #[tokio::test]
    async fn a_connection_is_enough_or_is_refused() {
        let port = server().await;
        assert_eq!(
            run_check("127.0.0.1", port, &check(8080, None)).await,
            Ok(())
        );
        // Bound, so that nobody else has it, and never listened on.
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = silent.local_addr().unwrap().port();
        let expected = "failed to make TCP connection to 127.0.0.1:9090: dial tcp 127.0.0.1:9090: connect: connection refused";
        let asked = run_check("127.0.0.1", port, &check(9090, None)).await;
        assert_eq!(asked, Err(expected.into()));
        let asked = run_check("127.0.0.1", port, &check(9090, Some("/"))).await;
        let expected = "failed to make HTTP request to '/' on port 9090: connection refused";
        assert_eq!(asked, Err(expected.into()));
    }
}
