use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::*;

/// Longest wait of a test; reached only by one that fails.
const LONG: Duration = Duration::from_secs(20);

fn to(network: SyslogNetwork, address: String) -> SyslogSettings {
    SyslogSettings {
        network,
        address,
        name: "vcap.gorouter".to_owned(),
        truncate: 0,
    }
}

/// Sends lines, and waits until the thread has ended.
fn send(settings: &SyslogSettings, lines: &[u8]) -> Arc<ThreadCounters> {
    let counters: Arc<ThreadCounters> = Arc::default();
    let (queue, thread) = start(settings, Arc::clone(&counters)).unwrap();
    queue.offer(lines, &ThreadCounters::default());
    drop(queue);
    thread.join().unwrap();
    counters
}

/// Of a message: what stands in front of its time, and behind the name.
fn parts(message: &str) -> (&str, &str) {
    let (front, rest) = message.split_once(' ').unwrap();
    let (time, rest) = rest.split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    let (_host, rest) = rest.split_once(' ').unwrap();
    (front, rest)
}

fn expected(line: &str) -> String {
    format!("vcap.gorouter {} - - {line}", std::process::id())
}

#[test]
fn a_message_has_the_form_of_rfc_5424() {
    let mut out = Vec::new();
    let header = Header::new("ro uter\n", "vcap.gorouter", 7);
    header.message(
        b"app.test - [x] \"GET / HTTP/1.1\" 200",
        1_500_000_000_123_456_789,
        8,
        &mut out,
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "<14>1 2017-07-14T02:40:00.123456Z router vcap.gorouter 7 - - app.test"
    );
    assert_eq!(Header::new("", " \n", 7).0, "- - 7");
    assert_eq!(
        Header::new(&"h".repeat(300), &"n".repeat(60), 7).0.len(),
        255 + 1 + 48 + 2
    );
}

#[test]
fn over_udp_each_line_is_a_datagram() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let address = receiver.local_addr().unwrap().to_string();
    let counters = send(&to(SyslogNetwork::Udp, address), b"one\ntwo\n");
    for line in ["one", "two"] {
        let mut buffer = [0; 1024];
        let bytes = receiver.recv(&mut buffer).unwrap();
        let message = std::str::from_utf8(&buffer[..bytes]).unwrap();
        assert_eq!(parts(message), ("<14>1", expected(line).as_str()));
    }
    assert_eq!(counters.syslog_lines.get(), 2);
}

#[test]
fn over_tcp_each_line_ends_with_a_line_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let settings = SyslogSettings {
        truncate: 4,
        ..to(SyslogNetwork::Tcp, address)
    };
    send(&settings, b"one\nlonger\n");
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let lines: Vec<_> = BufReader::new(stream).lines().map(Result::unwrap).collect();
    let texts: Vec<_> = lines.iter().map(|line| parts(line).1.to_owned()).collect();
    assert_eq!(texts, [expected("one"), expected("long")]);
}

#[test]
fn a_socket_of_the_system_takes_datagrams_or_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let named = path.display().to_string();
    let receiver = UnixDatagram::bind(&path).unwrap();
    receiver.set_read_timeout(Some(LONG)).unwrap();
    send(&to(SyslogNetwork::Unix, named.clone()), b"one\n");
    let mut buffer = [0; 1024];
    let bytes = receiver.recv(&mut buffer).unwrap();
    let message = std::str::from_utf8(&buffer[..bytes]).unwrap();
    assert_eq!(parts(message).1, expected("one"));

    std::fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    send(&to(SyslogNetwork::Unix, named), b"two\n");
    let (stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert_eq!(parts(line.trim_end()).1, expected("two"));
}

#[test]
fn what_nobody_takes_is_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none").display().to_string();
    let counters = send(&to(SyslogNetwork::Unix, nowhere), b"one\ntwo\nthree\n");
    assert_eq!(
        (counters.syslog_lines.get(), counters.syslog_drops.get()),
        (0, 3)
    );
}

#[test]
fn a_full_queue_drops_at_once() {
    let (lines, _waiting) = sync_channel(1);
    let (queue, counters) = (SyslogQueue(lines), ThreadCounters::default());
    queue.offer(b"one\ntwo\n", &counters);
    assert_eq!(counters.syslog_drops.get(), 0);
    queue.offer(b"three\nfour\n", &counters);
    assert_eq!(counters.syslog_drops.get(), 2);
}

#[test]
fn lines_go_on_after_syslog_came_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut sender = Sender {
        header: Header::new("router", "vcap.gorouter", 7),
        settings: to(SyslogNetwork::Unix, path.display().to_string()),
        connection: None,
        pause_ends: None,
        counters: Arc::default(),
        message: Vec::new(),
    };
    let receiver = UnixDatagram::bind(&path).unwrap();
    assert!(sender.send(b"one"));
    drop(receiver);
    std::fs::remove_file(&path).unwrap();
    assert!(!sender.send(b"two"));
    let receiver = UnixDatagram::bind(&path).unwrap();
    // Dropped while it pauses, also though somebody is there.
    sender.pause_ends = Some(Instant::now() + Duration::from_hours(1));
    assert!(!sender.send(b"three"));
    sender.pause_ends = Some(Instant::now());
    assert!(sender.send(b"four"));
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let mut buffer = [0; 1024];
    let bytes = receiver.recv(&mut buffer).unwrap();
    assert!(buffer[..bytes].ends_with(b"four"));
}
