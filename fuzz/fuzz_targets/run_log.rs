//! Any text as a run log: what is read keeps within its limits, other ends of lines change
//! nothing, and what can be written is read again.

#![no_main]

use compliance::reports::run_info::RunInfo;
use compliance::reports::runlog::{Limits, RunLog, write_report};
use libfuzzer_sys::fuzz_target;

/// Small, so that they are reached.
const LIMITS: Limits = Limits {
    text_bytes: 4096,
    reports: 8,
    field_bytes: 256,
    message_bytes: 64,
};

fn info() -> RunInfo {
    let (info, _) = RunInfo::from_file_name("root_2018-08-24T15:55:01Z.log").expect("a name");
    info
}

fuzz_target!(|data: &[u8]| {
    let _ = RunInfo::from_file_name(&String::from_utf8_lossy(data));
    let text = String::from_utf8_lossy(data);
    let Ok(log) = RunLog::parse(info(), &text, &LIMITS) else {
        return;
    };
    assert!(!log.reports.is_empty() && log.reports.len() <= LIMITS.reports);
    for report in &log.reports {
        assert!(report.msg.len() <= LIMITS.message_bytes);
        let mut line = String::new();
        if write_report(&mut line, report).is_ok() {
            let again = RunLog::parse(info(), &line, &Limits::default()).expect("what was written");
            assert_eq!(again.reports, std::slice::from_ref(report));
        }
    }
    if !text.contains('\r') {
        let windows = text.replace('\n', "\r\n");
        let limits = Limits {
            text_bytes: usize::MAX,
            ..LIMITS
        };
        let other = RunLog::parse(info(), &windows, &limits);
        assert_eq!(other.map(|log| log.reports), Ok(log.reports));
    }
});
