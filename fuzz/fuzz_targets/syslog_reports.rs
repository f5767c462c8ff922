//! Any text as a report over syslog: what can be written is read again.

#![no_main]

use compliance::reports::moment::Moment;
use compliance::reports::runlog::Limits;
use compliance::reports::syslog::{parse, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let received = Moment::from_rfc3339("2018-08-24T15:55:01Z").expect("a time");
    let Ok(found) = parse(&text, received, &Limits::default()) else {
        return;
    };
    if let Ok(message) = write(&found.report, "host") {
        let again = parse(&message, received, &Limits::default()).expect("what was written");
        assert_eq!(again.report, found.report);
        assert_eq!(again.host, "host");
    }
});
