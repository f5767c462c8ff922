//! Any bytes as a stream of syslog that a system sends as its log: however they are cut, the same messages come of them,
//! and each becomes one line.

#![no_main]

use lab_lifecycle::{MAX_LINE_BYTES, SyslogStream, journal_line, syslog_line};
use libfuzzer_sys::fuzz_target;

fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let (mut stream, mut found) = (SyslogStream::default(), Vec::new());
    for piece in pieces {
        stream.push(piece, |message| found.push(message.to_vec()));
    }
    stream.end(|message| found.push(message.to_vec()));
    found
}

fuzz_target!(|data: &[u8]| {
    let Some((size, stream)) = data.split_first() else {
        return;
    };
    let whole = messages(std::iter::once(stream));
    assert_eq!(messages(stream.chunks(usize::from(*size).max(1))), whole);
    for message in whole {
        assert!(message.len() <= MAX_LINE_BYTES + 1);
        assert!(!syslog_line(&message, 0).contains(&b'\n'));
    }
    let _ = journal_line(stream);
});
