//! Targets that misbehave: each failure has the right phase and cause, everything is
//! counted, and nothing is left open.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::free_port::free_port;
use crate::workload::{closed, failures, open, plain, refusal, run};
use lab_generator::Local;
use lab_load::arrivals::Process;
use lab_load::recording::{KEPT, Phase};
use lab_load::request::{AnswerEnd, Body, Journey, Mix, Step, Take};
use lab_load::{Flow, Generate as _, Protocol, Span, Workload};

/// A target that treats each connection in its own way, in threads of its own.
fn target(treat: impl Fn(usize, TcpStream) + Send + Sync + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || treat(number, stream));
        }
    });
    address
}

/// Reads one request without a body; `None` at the end.
fn request(stream: &mut TcpStream) -> Option<()> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        seen.push(byte[0]);
    }
    Some(())
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// Serves requests until the client goes.
fn serve(mut stream: TcpStream, answer: &[u8]) {
    while request(&mut stream).is_some() && stream.write_all(answer).is_ok() {}
}

#[test]
fn nobody_listens() {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let said = refusal(plain(address, 4));
    let expected =
        format!("connect to {address}: refused; start the target, or check host and port");
    assert_eq!(said, expected);
}

#[test]
fn a_name_that_is_nobody_s() {
    let mut workload = plain(([127, 0, 0, 1], 1).into(), 1);
    workload.target.host = "no-such-name.invalid".to_owned();
    let said = refusal(workload);
    assert!(
        said.starts_with("resolve the target's name \"no-such-name.invalid\": "),
        "{said}"
    );
    assert!(
        said.ends_with("check the name, or give an address"),
        "{said}"
    );
}

#[test]
fn a_target_without_tls_is_asked_for_it() {
    let address = target(|_, mut stream| {
        let mut hello = [0; 16];
        let _ = stream.read(&mut hello);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let mut workload = plain(address, 1);
    workload.target.tls = true;
    let said = refusal(workload);
    assert!(
        said.starts_with(&format!("begin TLS with {address}: not TLS;")),
        "{said}"
    );
}

#[test]
fn more_threads_than_connections_are_refused() {
    let mut workload = plain(([127, 0, 0, 1], 1).into(), 1);
    workload.threads = 2;
    assert!(refusal(workload).contains("connections: 1; expected as many as threads"));
}

#[test]
fn a_target_that_hangs_up_without_an_answer() {
    let address = target(|_, mut stream| {
        request(&mut stream);
    });
    let recorded = run(plain(address, 2), &closed(10));
    let seen = recorded.total.requests();
    assert_eq!((seen.sent, seen.answered), (10, 0));
    assert_eq!(failures(&seen), [(Phase::Read, "closed before answer", 10)]);
}

#[test]
fn a_target_that_resets() {
    let address = target(|_, mut stream| {
        // Closing with bytes unread resets the connection.
        let _ = stream.read(&mut [0; 4]);
    });
    let seen = run(plain(address, 1), &closed(5)).total.requests();
    assert_eq!(failures(&seen), [(Phase::Read, "reset", 5)]);
}

#[test]
fn a_request_that_the_kernel_refuses_was_made_all_the_same() {
    // Who connects finds the connection reset before, while or after it makes the request.
    let address = target(|number, stream| {
        if number == 0 {
            return serve(stream, ANSWER);
        }
        let no_linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream, no_linger).unwrap();
        std::thread::sleep(Duration::from_micros(number as u64 % 4 * 20));
    });
    let mut workload = plain(address, 16);
    workload.connections.held = 1;
    workload.connections.requests_each = Some(1);
    let recorded = run(workload, &open(Process::Constant, 3_000.0, 1.0));
    let seen = recorded.total.requests();
    let found = failures(&seen);
    assert!(seen.failed() > 2_500, "{found:?}");
    assert_eq!(
        seen.sent + seen.unsendable(),
        recorded.total.planned,
        "{found:?}"
    );
}

#[test]
fn a_target_that_says_something_else() {
    let address = target(|_, stream| serve(stream, b"220 mail.example ESMTP\r\n\r\n"));
    let seen = run(plain(address, 1), &closed(3)).total.requests();
    let found = failures(&seen);
    assert!(
        matches!(found.as_slice(), [(Phase::Protocol, _, 3)]),
        "{found:?}"
    );
}

#[test]
fn a_target_that_breaks_off() {
    let address = target(|_, mut stream| {
        request(&mut stream);
        let _ = stream.write_all(&ANSWER[..ANSWER.len() - 1]);
    });
    let seen = run(plain(address, 1), &closed(3)).total.requests();
    assert_eq!(failures(&seen), [(Phase::Read, "closed early", 3)]);
}

#[test]
fn a_target_that_never_answers() {
    let address = target(|_, mut stream| {
        request(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let mut workload = plain(address, 3);
    workload.timeout = Duration::from_millis(50);
    let seen = run(workload, &closed(6)).total.requests();
    assert_eq!(failures(&seen), [(Phase::Timeout, "timeout", 6)]);
}

#[test]
fn an_answer_that_drips_is_whole_in_the_end() {
    let address = target(|_, mut stream| {
        let _ = stream.set_nodelay(true);
        while request(&mut stream).is_some() {
            for byte in ANSWER {
                let _ = stream.write_all(&[*byte]);
                std::thread::yield_now();
            }
        }
    });
    let seen = run(plain(address, 2), &closed(20)).total.requests();
    assert_eq!((seen.answered, seen.failed()), (20, 0));
    assert_eq!(seen.bytes_received, 20 * ANSWER.len() as u64);
    assert_eq!(seen.statuses.get(&200), Some(&20));
}

#[test]
fn a_connection_that_the_target_closes_after_each_answer_is_replaced() {
    let address = target(|_, mut stream| {
        if request(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
    });
    let total = run(plain(address, 2), &closed(20)).total;
    let seen = total.requests();
    assert_eq!((seen.answered, seen.failed()), (20, 0));
    assert_eq!(total.connections.closed, 20);
    assert_eq!(total.connections.reused, 0);
}

#[test]
fn a_connection_that_the_target_closes_without_a_word_is_not_an_error() {
    let address = target(|_, mut stream| {
        if request(&mut stream).is_some() {
            let _ = stream.write_all(ANSWER);
        }
    });
    let total = run(plain(address, 1), &closed(20)).total;
    let seen = total.requests();
    assert_eq!((seen.sent, seen.answered, seen.failed()), (20, 20, 0));
    // The last one may be open still when the results are in.
    assert!(
        (19..=20).contains(&total.connections.closed),
        "{:?}",
        total.connections
    );
}

#[test]
fn connections_are_replaced_after_so_many_requests() {
    let address = target(|_, stream| serve(stream, ANSWER));
    let mut workload = plain(address, 2);
    workload.connections.requests_each = Some(5);
    let total = run(workload, &closed(40)).total;
    assert_eq!(total.requests().answered, 40);
    assert_eq!(total.connections.closed, 0);
    assert!(
        (8..=10).contains(&total.connections.opened),
        "{:?}",
        total.connections
    );
}

/// Heads of requests, one on a connection or several.
fn heads(each: Option<u64>, field: Option<&str>) -> (Vec<String>, u64) {
    let (sender, heads) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut bytes) {
                    let head = String::from_utf8_lossy(&bytes[..read]).into_owned();
                    let _ = sender.send(head);
                    let _ = stream.write_all(ANSWER);
                }
            });
        }
    });
    let mut workload = plain(address, 1);
    workload.connections.requests_each = each;
    let mut step = Step::new("get", "GET", "/");
    let field = field.map(|value| ("connection".to_owned(), value.to_owned()));
    step.headers.extend(field);
    workload.mix = Mix::of(step);
    let total = run(workload, &closed(5)).total;
    assert_eq!(total.requests().answered, 5);
    (heads.try_iter().collect(), total.connections.closed)
}

#[test]
fn the_only_request_of_a_connection_says_that_it_is() {
    let fields = |head: &str| head.to_ascii_lowercase().matches("connection:").count();
    let (seen, closed) = heads(Some(1), None);
    assert!(
        seen.iter()
            .all(|head| head.contains("\r\nConnection: close\r\n"))
    );
    assert_eq!((seen.len(), closed), (5, 0));
    let (seen, _) = heads(Some(1), Some("keep-alive"));
    assert!(
        seen.iter()
            .all(|head| fields(head) == 1 && head.contains("keep-alive"))
    );
    for each in [None, Some(2)] {
        let (seen, closed) = heads(each, None);
        assert!(seen.iter().all(|head| fields(head) == 0));
        assert_eq!((seen.len(), closed), (5, 0));
    }
}

/// Two steps with a pause between.
fn pausing(address: SocketAddr, think: u64) -> Workload {
    let mut first = Step::new("first", "GET", "/");
    first.think = Duration::from_millis(think);
    let mut workload = plain(address, 4);
    workload.timeout = Duration::from_millis(200);
    workload.mix = Mix {
        journeys: vec![Journey {
            name: "two".to_owned(),
            weight: 1.0,
            steps: vec![first, Step::new("second", "GET", "/")],
        }],
        ..Mix::default()
    };
    workload
}

/// The target answers at once, and is not said to hold what journeys keep.
#[test]
fn journeys_that_keep_every_connection_are_the_limit_of_the_load() {
    let address = target(|_, stream| serve(stream, ANSWER));
    let mut workload = pausing(address, 600);
    for (most, enough) in [(4, false), (200, true)] {
        workload.connections.most = most;
        let recorded = run(workload.clone(), &open(Process::Constant, 100.0, 0.5));
        let causes = failures(&recorded.total.kinds[0]);
        let mut kept = causes.iter().filter(|(_, cause, _)| *cause == KEPT);
        let kept = kept.any(|(_, _, count)| *count > 10);
        let validity = lab_load::validity::check(&workload, &recorded);
        let mut reasons = validity.reasons.iter();
        let under_sent = reasons.any(|reason| reason.check == "under-sent");
        assert_eq!(
            (kept, under_sent),
            (!enough, !enough),
            "{causes:?} {validity:?}"
        );
        // Those who pause when the load ends, or later, do not go on.
        assert_eq!(recorded.total.kinds[1].sent, 0);
    }
}

/// One that is shorter than the load.
#[test]
fn journeys_go_on_after_their_pause() {
    let address = target(|_, stream| serve(stream, ANSWER));
    let mut workload = pausing(address, 20);
    workload.connections.most = 200;
    let recorded = run(workload, &open(Process::Constant, 100.0, 0.5));
    let second = &recorded.total.kinds[1];
    assert!(second.sent > 40 && second.failed() == 0, "{}", second.sent);
}

#[test]
fn a_target_that_goes_away_fails_every_arrival_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let workload = plain(listener.local_addr().unwrap(), 2);
    let mut local = Local::start(workload).unwrap();
    drop(listener);
    let segment = open(Process::Constant, 200.0, 0.5);
    let total = local.run(&segment, &mut |_| Flow::Continue).unwrap().total;
    let seen = total.requests();
    assert_eq!(total.planned, 100);
    // What was sent to the old connections may fail first, in any way.
    assert_eq!(seen.failed(), 100, "{:?}", seen.errors);
    assert_eq!(seen.answered, 0);
}

/// A target that answers ten requests on four connections, then takes one on each, and dies.
#[test]
fn a_request_that_is_sent_once_more_to_a_dead_target_failed_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let taken = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let streams: Vec<TcpStream> = listener.incoming().take(4).flatten().collect();
            let mut dying = Vec::new();
            for mut stream in streams {
                dying.push(scope.spawn(move || {
                    while request(&mut stream).is_some() {
                        if taken.fetch_add(1, Ordering::Relaxed) >= 10 {
                            return Some(stream);
                        }
                        stream.write_all(ANSWER).unwrap();
                    }
                    None
                }));
            }
            let dying: Vec<_> = dying.into_iter().map(|each| each.join().unwrap()).collect();
            drop(listener);
            drop(dying);
        });
        let recorded = run(plain(address, 4), &open(Process::Constant, 100.0, 0.5));
        let seen = recorded.total.requests();
        let tried = seen.tried();
        let (planned, causes) = (recorded.total.planned, failures(&seen));
        assert_eq!((planned, seen.answered), (50, 10), "{causes:?}");
        assert_eq!((tried.all, tried.failed), (50, 40), "{causes:?}");
        assert!(seen.retried > 0 && seen.sent > 10, "{causes:?}");
    });
}

/// A value with a line break cannot stand in a field: such a request is never sent.
#[test]
fn a_request_that_cannot_be_made_was_tried_and_failed() {
    let address = target(|_, stream| {
        serve(
            stream,
            b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\"a\\nb\"",
        );
    });
    let mut first = Step::new("first", "GET", "/");
    first.take = vec![Take::parse("token = json ").unwrap()];
    let mut second = Step::new("second", "GET", "/");
    second.headers = vec![("X-Token".to_owned(), "{token}".to_owned())];
    let mut workload = plain(address, 4);
    workload.mix = Mix {
        journeys: vec![Journey {
            name: "two".to_owned(),
            weight: 1.0,
            steps: vec![first, second],
        }],
        ..Mix::default()
    };
    let recorded = run(workload.clone(), &open(Process::Constant, 100.0, 0.3));
    let [first, second] = &recorded.total.kinds[..] else {
        panic!("two steps");
    };
    assert_eq!((first.tried().all, first.tried().failed), (30, 0));
    assert_eq!((second.sent, second.tried().share()), (0, Some(1.0)));
    let validity = lab_load::validity::check(&workload, &recorded);
    let mut reasons = validity.reasons.iter();
    assert!(
        !reasons.any(|reason| reason.check == "under-sent"),
        "{validity:?}"
    );
}

#[test]
fn stopping_ends_with_the_results_so_far() {
    let address = target(|_, stream| serve(stream, ANSWER));
    let mut local = Local::start(plain(address, 2)).unwrap();
    let segment = open(Process::Poisson, 200.0, 3600.0);
    let recorded = local.run(&segment, &mut |_| Flow::Stop).unwrap();
    assert_eq!(recorded.cut.as_deref(), Some("stopped"));
    let seen = recorded.total.requests();
    assert_eq!(seen.sent, seen.answered);
    assert!(seen.sent > 0 && recorded.total.length < Duration::from_secs(3600));
    // The same generator goes on with the next segment.
    let next = local.run(&open(Process::Constant, 100.0, 0.2), &mut |_| {
        Flow::Continue
    });
    let next = next.unwrap();
    assert_eq!((next.cut, next.total.requests().answered), (None, 20));
    // And another thread can stop it at once.
    let stopper = local.stopper();
    let stop = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stopper.stop();
    });
    let recorded = local.run(&segment, &mut |_| Flow::Continue).unwrap();
    assert_eq!(recorded.cut.as_deref(), Some("stopped"));
    stop.join().unwrap();
}

#[test]
fn a_large_request_and_a_large_answer_pass() {
    const BYTES: usize = 3_000_000;
    let address = target(|_, mut stream| {
        let mut bytes = vec![0; BYTES];
        while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {}
    });
    let mut workload = plain(address, 2);
    workload.target.protocol = Protocol::Tcp;
    let mut step = Step::new("echo", "", "");
    step.body = Body::Bytes(vec![7; BYTES]);
    step.answer = AnswerEnd::Echo;
    workload.mix = Mix::of(step);
    let seen = run(workload, &closed(6)).total.requests();
    assert_eq!((seen.answered, seen.failed()), (6, 0), "{:?}", seen.errors);
    assert_eq!(seen.bytes_received, 6 * BYTES as u64);
}

/// A target that takes no more of a request says why, and hangs up at once.
#[test]
fn an_answer_before_the_end_of_its_request_counts() {
    let address = target(|_, mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        // Closing with bytes unread resets the connection.
        let _ = stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    });
    let mut workload = plain(address, 1);
    let mut step = Step::new("post", "POST", "/");
    step.body = Body::Bytes(vec![b'x'; 8_000_000]);
    workload.mix = Mix::of(step);
    let seen = run(workload, &closed(30)).total.requests();
    assert_eq!(seen.statuses.get(&413), Some(&30), "{:?}", seen.errors);
}

#[test]
fn a_body_longer_than_announced_is_counted_and_the_generator_closes() {
    // Together with the answer, and a little after it.
    for later in [false, true] {
        let address = target(move |_, mut stream| {
            while request(&mut stream).is_some() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntoo");
                if later {
                    std::thread::sleep(Duration::from_millis(20));
                }
                let _ = stream.write_all(b" long");
            }
        });
        let total = run(plain(address, 1), &closed(20)).total;
        let (seen, connections) = (total.requests(), &total.connections);
        // Where the next request was sent before, its answer does not begin as one.
        assert_eq!(seen.answered + seen.failed(), 20, "{later}");
        let noticed = connections.surplus + seen.failed();
        assert!(noticed >= 9, "{later}: {connections:?}");
        assert_eq!(connections.closed, 0, "{later}: {connections:?}");
    }
}

/// The target closes none of these connections, and is not said to.
#[test]
fn more_than_one_answer_at_once_is_counted_and_the_generator_closes() {
    let double = target(|_, stream| serve(stream, &[ANSWER, ANSWER].concat()));
    let total = run(plain(double, 1), &closed(20)).total;
    let counts = |total: &Span| (total.connections.surplus, total.connections.closed);
    assert_eq!(total.requests().answered, 20);
    assert_eq!(counts(&total), (20, 0));
    let five = target(|_, mut stream| {
        while stream.read(&mut [0; 64]).is_ok_and(|read| read > 0) {
            let _ = stream.write_all(b"hello");
        }
    });
    for (end, surplus) in [
        (AnswerEnd::Bytes(3), 20),
        (AnswerEnd::Echo, 20),
        (AnswerEnd::Delimiter(b"e".to_vec()), 20),
        (AnswerEnd::Bytes(5), 0),
    ] {
        let mut workload = plain(five, 1);
        workload.target.protocol = Protocol::Tcp;
        let mut step = Step::new("say", "", "");
        step.body = Body::Template("hi".to_owned());
        step.answer = end.clone();
        workload.mix = Mix::of(step);
        let total = run(workload, &closed(20)).total;
        assert_eq!(total.requests().answered, 20, "{end:?}");
        assert_eq!(counts(&total), (surplus, 0), "{end:?}");
    }
}

#[test]
fn an_answer_that_nobody_asked_for_before_a_close_is_no_surplus() {
    let address = target(|_, mut stream| {
        if request(&mut stream).is_some() {
            // In one piece: after a piece of its own the next request may be on its way, and this its answer.
            let unasked = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(&[ANSWER, unasked].concat());
        }
    });
    let total = run(plain(address, 1), &closed(20)).total;
    assert_eq!(total.requests().answered, 20);
    assert_eq!(total.connections.surplus, 0, "{:?}", total.connections);
}
