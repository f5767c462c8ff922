//! The bytes of the answers, made once for each behaviour.

use std::ops::Range;
use std::sync::Arc;

use super::Shared;

/// Bytes of a date as HTTP writes it.
const DATE_BYTES: usize = 29;

/// What one thread answers with.
pub(super) struct Answers {
    shared: Arc<Shared>,
    /// Made when they are first needed; there are one or two.
    made: Vec<Pair>,
    /// The second that the dates show.
    second: i64,
}

/// The answer with a status, for connections that stay and for those that close.
struct Pair {
    failing: Option<u16>,
    kept: Answer,
    closing: Answer,
}

/// One answer: a head with a date in it, and a body.
struct Answer {
    bytes: Vec<u8>,
    date: Range<usize>,
    head: usize,
}

impl Answers {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            made: Vec::new(),
            second: i64::MIN,
        }
    }

    /// Lets the dates show `second`, of the Unix clock.
    pub(super) fn set_second(&mut self, second: i64) {
        if second == self.second {
            return;
        }
        self.second = second;
        for pair in &mut self.made {
            pair.set_second(second);
        }
    }

    /// The answer to a request: a good one, or one that fails with a status.
    pub(super) fn bytes(&mut self, failing: Option<u16>, closing: bool, with_body: bool) -> &[u8] {
        let found = self.made.iter().position(|pair| pair.failing == failing);
        let place = found.unwrap_or_else(|| {
            let mut pair = Pair::new(&self.shared, failing);
            pair.set_second(self.second);
            self.made.push(pair);
            self.made.len() - 1
        });
        let pair = &self.made[place];
        let answer = if closing { &pair.closing } else { &pair.kept };
        match with_body {
            true => &answer.bytes,
            false => &answer.bytes[..answer.head],
        }
    }
}

impl Pair {
    fn new(shared: &Shared, failing: Option<u16>) -> Self {
        Self {
            failing,
            kept: Answer::new(shared, failing, ""),
            closing: Answer::new(shared, failing, "Connection: close\r\n"),
        }
    }

    fn set_second(&mut self, second: i64) {
        let Ok(time) = jiff::Timestamp::from_second(second) else {
            return;
        };
        let date = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        for answer in [&mut self.kept, &mut self.closing] {
            if let (DATE_BYTES, Some(place)) =
                (date.len(), answer.bytes.get_mut(answer.date.clone()))
            {
                place.copy_from_slice(date.as_bytes());
            }
        }
    }
}

impl Answer {
    fn new(shared: &Shared, failing: Option<u16>, connection: &str) -> Self {
        let (status, body) = match failing {
            Some(status) => (status, b"told to fail\n".to_vec()),
            None => (200, vec![b'Z'; shared.body_bytes]),
        };
        // Neither may have a body (RFC 9110 sections 15.3.5 and 15.4.5).
        let body = if matches!(status, 204 | 304) {
            Vec::new()
        } else {
            body
        };
        let reason = http::StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .unwrap_or("Told");
        let mut head = format!("HTTP/1.1 {status} {reason}\r\n{connection}");
        if !shared.id.is_empty() {
            head += &format!("X-Backend: {}\r\n", shared.id);
        }
        head += "Date: ";
        let date = head.len()..head.len() + DATE_BYTES;
        head += "Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        if !matches!(status, 204 | 304) {
            head += &format!(
                "Content-Length: {}\r\nContent-Type: text/plain; charset=utf-8\r\n",
                body.len()
            );
        }
        head += "\r\n";
        let length = head.len();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body);
        Self {
            bytes,
            date,
            head: length,
        }
    }
}
