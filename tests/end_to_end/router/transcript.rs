//! What was recorded from gorouter (commit a602bb6), and how two runs are compared.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// The first recording: old status endpoints, no tracing.
pub(super) const FIRST: &str =
    include_str!("../../../crates/routing/tests/data/gorouter/transcript-1.txt");
/// The second: tracing, small request heads, new status endpoints.
pub(super) const SECOND: &str =
    include_str!("../../../crates/routing/tests/data/gorouter/transcript-2.txt");
/// Lines of its access log.
pub(super) const LOG: &str =
    include_str!("../../../crates/routing/tests/data/gorouter/access-log.txt");

/// The address of the machine on which they were recorded, which a router tells its clients.
const RECORDED_ON: &str = "192.0.2.2";

/// The address of this machine: that from which packets to the outside would leave.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    // An address that belongs to nobody (RFC 5737). Nothing is sent.
    match socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)) {
        Ok(()) => socket.local_addr().expect("an address").ip(),
        Err(_) => Ipv4Addr::LOCALHOST.into(),
    }
}

/// The text of the section with a title.
#[track_caller]
pub(super) fn section<'t>(transcript: &'t str, title: &str) -> &'t str {
    let begin = format!("===== {title}\n");
    let Some(start) = transcript.find(&begin) else {
        panic!("no section {title:?}");
    };
    let text = &transcript[start + begin.len()..];
    text[..text.find("\n===== ").unwrap_or(text.len())].trim_end_matches('\n')
}

/// The log line that was recorded behind the section with a title.
#[track_caller]
pub(super) fn log_behind<'t>(transcript: &'t str, title: &str) -> &'t str {
    let begin = format!("===== {title}\n");
    let start = transcript.find(&begin).expect("a section") + begin.len();
    for behind in transcript[start..].split("\n===== ").skip(1) {
        let (title, text) = behind.split_once('\n').expect("a title");
        if matches!(title, "log" | "access log") {
            return text.lines().next().expect("a line");
        }
    }
    panic!("no log line behind {title:?}");
}

/// A text without what differs from run to run: dates, times, ports. Random ids become
/// letters in the order in which they turn up, so that the same id stays the same.
pub(super) fn masked(text: &str) -> String {
    let text = text.replace('\r', "");
    let text = text
        .trim_end()
        .trim_end_matches("<<TIMEOUT>>")
        .trim_end_matches("<<EOF>>");
    let mut ids = Ids::default();
    let lines = text.trim_end().lines().map(|line| {
        if line.starts_with("Date: ") {
            return "Date: *".to_owned();
        }
        match line.strip_prefix("X-Request-Start: ") {
            Some(start) if start.len() == 13 => return "X-Request-Start: *".to_owned(),
            _ => {}
        }
        ids.masked(&without_times(&without_ports(line)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn without_ports(line: &str) -> String {
    let mut parts = line.split("127.0.0.1:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("127.0.0.1:*");
        out.push_str(part.trim_start_matches(is_digit));
    }
    out
}

/// Masks the moments and the durations of a log line.
fn without_times(line: &str) -> String {
    let mut line = line.to_owned();
    for (before, after) in [
        (" - [", "]"),
        ("response_time:", " "),
        ("backend_time:", " "),
    ] {
        mask_between(&mut line, before, after);
    }
    // Requests that reached no backend have no time of the router's own.
    if !line.contains("gorouter_time:0.000000 ") {
        mask_between(&mut line, "gorouter_time:", " ");
    }
    line
}

fn mask_between(line: &mut String, before: &str, after: &str) {
    let Some(start) = line.find(before).map(|at| at + before.len()) else {
        return;
    };
    if let Some(length) = line[start..].find(after)
        && !line[start..].starts_with('"')
    {
        line.replace_range(start..start + length, "*");
    }
}

/// The halves of ids, each 16 hexadecimal digits, in the order in which they turned up.
#[derive(Default)]
struct Ids(Vec<String>);

impl Ids {
    fn masked(&mut self, line: &str) -> String {
        let (mut out, mut rest) = (String::new(), line);
        while !rest.is_empty() {
            let run = rest
                .find(|letter| !matches!(letter, '0'..='9' | 'a'..='f' | '-'))
                .unwrap_or(rest.len());
            if run == 0 {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                out.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            self.mask_run(&rest[..run], &mut out);
            rest = &rest[run..];
        }
        out
    }

    fn mask_run(&mut self, run: &str, out: &mut String) {
        // An id may have a number before it: `3-e3822c49-...`.
        let uuid = run
            .len()
            .checked_sub(36)
            .and_then(|at| run.split_at_checked(at));
        let uuid = uuid.filter(|(_, uuid)| uuid.as_bytes()[8] == b'-');
        if run.starts_with("11111111-") {
            out.push_str(run);
        } else if let Some((before, uuid)) = uuid {
            out.push_str(before);
            out.push_str("uuid");
            self.halves(&uuid.replace('-', ""), out);
        } else {
            for (index, part) in run.split('-').enumerate() {
                if index > 0 {
                    out.push('-');
                }
                match part.len() {
                    16 | 32 => self.halves(part, out),
                    _ => out.push_str(part),
                }
            }
        }
    }

    fn halves(&mut self, digits: &str, out: &mut String) {
        for half in [&digits[..16], digits.get(16..).unwrap_or_default()] {
            if half.is_empty() {
                continue;
            }
            let known = self.0.iter().position(|id| id == half);
            let index = known.unwrap_or_else(|| {
                self.0.push(half.to_owned());
                self.0.len() - 1
            });
            out.push_str(&format!("<{index}>"));
        }
    }
}

/// Gathers what differs, so that one run shows all of it.
#[derive(Default)]
pub(super) struct Differences(Vec<String>);

impl Differences {
    /// Compares with a recording. One that was cut is compared as far as it goes.
    pub(super) fn compare(&mut self, title: &str, found: &str, recorded: &str, cut: bool) {
        let recorded = recorded.replace(RECORDED_ON, &own_address().to_string());
        let (found, mut recorded) = (masked(found), masked(&recorded));
        let mut begin = found.as_str();
        if cut {
            // The last word may have been cut within an id.
            let whole = recorded.rfind(['\n', ' ']).unwrap_or(recorded.len());
            recorded.truncate(whole);
            begin = found.get(..whole).unwrap_or(&found);
        }
        if begin != recorded {
            self.0.push(format!(
                "{title}\n--- recorded\n{recorded}\n--- found\n{found}\n"
            ));
        }
    }

    pub(super) fn holds(&mut self, title: &str, holds: bool, found: &str) {
        if !holds {
            self.0.push(format!("{title}\n--- found\n{found}\n"));
        }
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{}", self.0.join("\n========== "));
        }
    }
}
