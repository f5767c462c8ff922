//! Any bytes as a stream of syslog: however they are cut, the same messages come of them, and nothing of what is put
//! together is lost.

#![no_main]

use compliance::reports::moment::Moment;
use compliance::reports::runlog::Limits;
use compliance::reports::syslog::frames::{Frame, Frames, MESSAGE_BYTES};
use compliance::reports::syslog::parse;
use compliance::reports::syslog::runs::{Bounds, Runs};
use libfuzzer_sys::fuzz_target;

/// The messages of a stream, and whether all of it could be read.
fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, bool) {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.push(piece);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    found.extend(frames.rest().map(Frame::Message));
    (found, true)
}

fuzz_target!(|data: &[u8]| {
    let Some((size, stream)) = data.split_first() else {
        return;
    };
    let whole = messages(std::iter::once(stream));
    let cut = messages(stream.chunks(usize::from(*size).max(1)));
    assert_eq!(cut, whole);
    let received = Moment::from_rfc3339("2018-08-24T15:55:01Z").expect("a time");
    let (mut runs, mut taken) = (Runs::new(Bounds::default()), 0);
    for frame in whole.0 {
        let Frame::Message(message) = frame else {
            continue;
        };
        assert!(message.len() <= MESSAGE_BYTES);
        let text = String::from_utf8_lossy(&message);
        if let Ok(found) = parse(&text, received, &Limits::default()) {
            taken += u64::from(runs.take(&found.report, 0).is_ok());
        }
    }
    let all = runs.all(usize::MAX);
    assert_eq!(all.iter().map(|run| run.reports).sum::<u64>(), taken);
});
