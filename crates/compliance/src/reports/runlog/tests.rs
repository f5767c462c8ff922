use proptest::prelude::*;
use serde_json::Value;

use super::{Limits, Moment, Report, ReportKind, RunInfo, RunLog, RunLogError, write_report};

const NODE: &str = "e745a140-40bc-4b86-b6dc-084488fc906b";
const LOG_2017: &str = include_str!(
    "../../../tests/data/rudder/2017-08-24T15_55_01+00_00@e745a140-40bc-4b86-b6dc-084488fc906b.log"
);
const LOG_2018: &str = include_str!(
    "../../../tests/data/rudder/2018-08-24T15_55_01+00_00@e745a140-40bc-4b86-b6dc-084488fc906b.log"
);
const JSON_2018: &str = include_str!(
    "../../../tests/data/rudder/2018-08-24T15_55_01+00_00@e745a140-40bc-4b86-b6dc-084488fc906b.json"
);
const NO_TIMES: &str = include_str!("../../../tests/data/rudder/normal.log");

const LINE: &str = "2018-08-24T15:55:01+00:00 R: @@Common@@result_repaired@@rule@@directive@@0@@\
                    CRON Daemon@@None@@2018-08-24 15:55:01 +00:00##root@#Cron was repaired\n";

fn info(node: &str) -> RunInfo {
    let name = format!("2018-08-24T15:55:01+00:00@{node}.log");
    RunInfo::from_file_name(&name).unwrap().0
}

fn parse(text: &str) -> RunLog<'_> {
    RunLog::parse(info("root"), text, &Limits::default()).unwrap()
}

fn messages<'a>(log: &'a RunLog<'_>) -> Vec<(&'a str, &'a str)> {
    let reports = log.reports.iter();
    reports
        .map(|report| (report.event_type, &*report.msg))
        .collect()
}

#[test]
fn relayd_reads_the_same_values() {
    let log = RunLog::parse(info(NODE), LOG_2018, &Limits::default()).unwrap();
    let ours = serde_json::to_value(&log).unwrap();
    assert_eq!(ours, serde_json::from_str::<Value>(JSON_2018).unwrap());
    assert_eq!(log.reports.len(), 72);
    assert_eq!((log.broken, log.other_starts), (1, 1));
    assert!(log.is_run());
    assert_eq!(log.aborts().count(), 0);
}

#[test]
fn ends_of_lines_do_not_matter() {
    let unix = RunLog::parse(info(NODE), LOG_2017, &Limits::default()).unwrap();
    assert_eq!(unix.reports.len(), 72);
    for end in ["\r\n", "\r"] {
        let text = LOG_2017.replace('\n', end);
        let other = RunLog::parse(info(NODE), &text, &Limits::default()).unwrap();
        assert_eq!(other, unix);
    }
}

#[test]
fn lines_without_times_are_no_reports() {
    let error = RunLog::parse(info("root"), NO_TIMES, &Limits::default()).unwrap_err();
    assert!(
        matches!(error, RunLogError::NoReport { broken } if broken > 60),
        "{error}"
    );
}

#[test]
fn fields_may_be_empty_or_of_several_lines() {
    let text = LINE
        .replace("@@0@@", "@@@@")
        .replace("CRON Daemon", "CRON\r\n2018-08-24T15:55:01+00:00 Daemon")
        .replace("None", "multi\r\nline")
        .replace(
            "repaired\n",
            "repaired\r2018-08-24T15:55:01+00:00 at last\n\nend\n",
        );
    let log = parse(&text);
    let report = &log.reports[0];
    assert_eq!(report.report_id, "0");
    assert_eq!(report.component, "CRON\nDaemon");
    assert_eq!(report.key_value, "multi\nline");
    assert_eq!(report.msg, "Cron was repaired\nat last\n\nend");
    let text = LINE.replace("None", "");
    assert_eq!(parse(&text).reports[0].key_value, "None");
}

#[test]
fn lines_of_the_agents_log_belong_to_the_report_after_them() {
    let time = "2019-05-09T13:36:46+00:00";
    let levels = [
        ("CRITICAL: a", "log_warn", "a"),
        ("   error a", "log_warn", "a"),
        (" warning:   a", "log_warn", "a"),
        ("  notice: a", "log_info", "a"),
        ("    info:a", "log_info", "a"),
        (" verbose: a", "log_debug", "a"),
        ("   debug: a", "log_debug", "a"),
        ("rudder    error: a", "log_warn", "a"),
        ("rudder     info: a", "log_info", "a"),
        ("R: [FATAL] a", "log_warn", "a"),
        ("R: [INFO]: a", "log_info", "a"),
        ("R: [DEBUG] a", "log_debug", "a"),
        ("R: WARNING a", "log_warn", "a"),
        ("R: DEBUG a", "log_warn", "a"),
        ("R: a", "log_info", "a"),
        ("R:a", "log_info", "a"),
    ];
    for (line, event_type, msg) in levels {
        let text = format!("{time} {line}\nmore\n{time} still\n{LINE}");
        let log = parse(&text);
        let msg = format!("{msg}\nmore\nstill");
        let expected = [
            (event_type, &*msg),
            ("result_repaired", "Cron was repaired"),
        ];
        assert_eq!(messages(&log), expected, "{line}");
        assert_eq!(log.reports[0].execution_datetime.to_string(), time);
        assert_eq!(log.reports[0].component, "CRON Daemon");
    }
}

#[test]
fn broken_lines_are_dropped_and_counted() {
    let broken = "2018-08-24T15:55:01+00:00 R: @@Common@@broken\n";
    let text = format!("garbage\n{LINE}{broken}{LINE}{broken}{broken}{LINE}");
    let log = parse(&text);
    assert_eq!((log.reports.len(), log.broken), (3, 4));
    let text = format!("{}{LINE}", LINE.replace("2018-08-24 15", "2018-99-24 15"));
    let log = parse(&text);
    assert_eq!((log.reports.len(), log.broken), (1, 1));
    // Only component, key and message may have several lines.
    for from in [
        "Common",
        "result_repaired",
        "@@rule",
        "@@directive",
        "@@0",
        "##root",
    ] {
        let text = format!("{}{LINE}", LINE.replace(from, &format!("{from}\n")));
        let log = parse(&text);
        assert_eq!((log.reports.len(), log.broken), (1, 1), "{from}");
    }
    // The end of the last line is missing: it may not be whole.
    let text = format!("{LINE}{}", LINE.trim_end());
    let log = parse(&text);
    assert_eq!(log.reports.len(), 1);
}

#[test]
fn a_line_with_a_time_but_no_level_takes_the_next_report_along() {
    // As relayd does.
    let text = format!("2018-08-24T15:55:01+00:00 hello\n{LINE}{LINE}");
    let log = parse(&text);
    assert_eq!((log.reports.len(), log.broken), (1, 1));
}

#[test]
fn bad_utf8_is_replaced() {
    let mut bytes = LINE.as_bytes().to_vec();
    let length = bytes.len();
    bytes[length - 2] = 0xff;
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(parse(&text).reports[0].msg, "Cron was repaire\u{fffd}");
}

#[test]
fn markers_say_what_a_run_is() {
    let marker = |component: &str| {
        LINE.replace("result_repaired", "control")
            .replace("CRON Daemon", component)
            .replace("None", "20180824-130007-3ad37587")
    };
    let text = format!("{LINE}{}", marker("end"));
    let log = parse(&text);
    assert_eq!(log.config_id.as_deref(), Some("20180824-130007-3ad37587"));
    assert!(!log.is_run());
    let text = format!("{}{LINE}", marker("start"));
    assert!(parse(&text).is_run());
    let log = parse(LINE);
    assert_eq!((log.config_id.as_deref(), log.is_run()), (None, false));
    let text = LINE
        .replace("result_repaired", "log_warn")
        .replace("CRON Daemon", "abort run")
        .replace("None", "policy mode");
    let log = parse(&text);
    let aborts: Vec<_> = log.aborts().collect();
    assert_eq!(aborts, [("policy mode", "Cron was repaired")]);
}

#[test]
fn a_log_of_another_node_is_refused() {
    let text = format!("{LINE}{}", LINE.replace("##root", "##other"));
    let error = RunLog::parse(info("root"), &text, &Limits::default()).unwrap_err();
    let expected = RunLogError::OtherNode {
        expected: "root".to_owned(),
        found: "other".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn limits_hold() {
    let text = LINE.repeat(3);
    let limits = |limits: Limits| RunLog::parse(info("root"), &text, &limits);
    let usual = Limits::default();
    let error = limits(Limits {
        reports: 2,
        ..usual
    })
    .unwrap_err();
    assert_eq!(error, RunLogError::TooManyReports { limit: 2 });
    let error = limits(Limits {
        text_bytes: 9,
        ..usual
    })
    .unwrap_err();
    assert!(matches!(error, RunLogError::TooLong { limit: 9, .. }));
    let small = Limits {
        field_bytes: 9,
        ..usual
    };
    assert_eq!(
        limits(small).unwrap_err(),
        RunLogError::NoReport { broken: 3 }
    );
}

#[test]
fn a_long_message_is_cut_and_its_report_stays() {
    let bound = Limits::default().message_bytes;
    // A character of two bytes does not fit.
    let long = "x".repeat(bound - 1) + "é";
    let text = LINE
        .replace("Cron was", &long)
        .replace(" repaired\n", "\nmore\n");
    let info_line = format!("2018-08-24T15:55:01+00:00     info: {long}\n");
    let joined = format!("{text}{info_line}{LINE}");
    let log = parse(&joined);
    assert_eq!((log.reports.len(), log.broken, log.cut), (3, 0, 2));
    for report in &log.reports[..2] {
        assert_eq!(report.msg.len(), bound - 1);
    }
    assert_eq!(log.reports[2].msg, "Cron was repaired");
    assert_eq!(parse(LINE).cut, 0);
    // Fields are what a report is about: without them it is none.
    let text = format!("{}{LINE}", LINE.replace("None", &"k".repeat(65 << 10)));
    let log = parse(&text);
    assert_eq!((log.reports.len(), log.broken, log.cut), (1, 1, 0));
}

#[test]
fn fields_of_several_lines_are_not_copied_without_end() {
    let long = format!("{}\n{}", "k".repeat(20 << 10), "l".repeat(20 << 10));
    let log_line = "2018-08-24T15:55:01+00:00 R: x\n";
    let of = |lines: usize| format!("{}{}", log_line.repeat(lines), LINE.replace("None", &long));
    assert_eq!(parse(&of(1_000)).reports.len(), 1_001);
    let text = of(100_000);
    let error = RunLog::parse(info("root"), &text, &Limits::default()).unwrap_err();
    assert_eq!(error, RunLogError::Repeats { limit: 64 << 20 });
}

#[test]
fn types_are_known_in_any_case() {
    assert_eq!(
        ReportKind::from_name("Result_NA"),
        ReportKind::ResultNotApplicable
    );
    assert_eq!(ReportKind::from_name("log_warning"), ReportKind::LogWarn);
    assert_eq!(ReportKind::LogInfo.name(), "log_info");
    assert_eq!(ReportKind::from_name("result_"), ReportKind::Unknown);
}

fn report<'a>(component: &'a str, key: &'a str, msg: &'a str) -> Report<'a> {
    let moment = Moment::from_rfc3339("2018-08-24T15:55:01+02:00").unwrap();
    Report {
        start_datetime: moment,
        rule_id: "rule",
        directive_id: "directive",
        component: component.into(),
        key_value: key.into(),
        event_type: "result_success",
        msg: msg.into(),
        policy: "technique",
        node_id: "root",
        execution_datetime: moment,
        report_id: "7",
    }
}

#[test]
fn what_would_be_read_as_something_else_is_not_written() {
    for (component, key, msg) in [
        ("a@@b", "k", "m"),
        ("a@", "k", "m"),
        ("a", "k\r", "m"),
        ("a", "k", "m\nR: @@"),
        ("a", "k", "m\n   error x"),
        ("a", "k", "R: x"),
        ("a\n", "k", "m"),
        ("a", "2018-08-24T15:55:01Z k", "m"),
    ] {
        let mut out = String::new();
        assert!(write_report(&mut out, &report(component, key, msg)).is_err());
        assert!(out.is_empty());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        component in "[a-z@#é \n]{1,12}", key in "[a-z@#: \n]{1,12}", msg in "[a-zR:@# \n]{0,40}",
    ) {
        let report = report(&component, &key, &msg);
        let mut out = String::new();
        if write_report(&mut out, &report).is_ok() {
            let log = RunLog::parse(info("root"), &out, &Limits::default()).unwrap();
            prop_assert_eq!(log.reports, vec![report]);
            prop_assert_eq!(log.broken, 0);
        }
    }

    #[test]
    fn any_text_is_read_to_its_end(
        parts in prop::collection::vec(prop::sample::select(vec![
            "2018-08-24T15:55:01+00:00 ", "R: @@", "@@", "##", "@#", "\n", "\r\n", "\r", "é", " ",
            "   error: ", "R: ", "result_na", "2018-08-24 15:55:01+00:00", "root", LINE,
        ]), 0..60),
    ) {
        let text = parts.concat();
        let reports = match RunLog::parse(info("root"), &text, &Limits::default()) {
            Ok(log) => log.reports.len(),
            Err(RunLogError::NoReport { .. } | RunLogError::OtherNode { .. }) => 0,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(reports <= text.lines().count() + text.matches('\r').count());
    }
}
