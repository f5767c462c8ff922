use proptest::prelude::*;

use super::*;

const AT: i64 = 1_464_900_000_123_456_789;

struct Read {
    at: i64,
    message: String,
    source: Option<String>,
    fields: Vec<Option<String>>,
}

fn read(format: Format, line: &str, paths: &[&str]) -> Option<Read> {
    let mut fields = Fields::new();
    let ids: Vec<FieldId> = paths.iter().map(|path| fields.register(path)).collect();
    let mut scanner = Scanner::new(fields);
    let line = scanner.scan(format, line.as_bytes()).ok()?;
    let text = |bytes: Cow<'_, [u8]>| String::from_utf8(bytes.into_owned()).unwrap();
    Some(Read {
        at: line.at_unix_ns(),
        message: text(line.message()),
        source: line.source().map(text),
        fields: ids.iter().map(|id| line.field(*id).map(text)).collect(),
    })
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn lager() {
    let line = r#"{"timestamp":"1464900000.123456789","source":"bbs","message":"bbs.request.desire-task.starting","log_level":1,"data":{"session":"1.2","task-guid":"t-1","actual_lrp_key":{"process_guid":"p","index":0},"source":"inner"}}"#;
    let paths = ["session", "task-guid", "actual_lrp_key.index", "log_level"];
    for format in [Format::Auto, Format::Lager, Format::Json] {
        let read = read(format, line, &paths).unwrap();
        assert_eq!(read.at, AT);
        assert_eq!(read.message, "bbs.request.desire-task.starting");
        assert_eq!(read.source.as_deref(), Some("bbs"));
        assert_eq!(read.fields, some(&["1.2", "t-1", "0", "1"]));
    }
}

#[test]
fn lager_with_rfc3339_and_a_prefix() {
    let line = r#"[2016-06-02] rep/3: {"timestamp":"2016-06-02T20:40:00.123456789Z","level":"info","source":"rep","message":"rep.start","data":{"guid":"g"}}"#;
    for format in [Format::Auto, Format::Lager] {
        let read = read(format, line, &["guid", "level"]).unwrap();
        assert_eq!((read.at, read.message.as_str()), (AT, "rep.start"));
        assert_eq!(read.fields, some(&["g", "info"]));
    }
    assert!(read(Format::Json, line, &[]).is_none());
}

#[test]
fn plain_json_under_any_of_its_names() {
    for line in [
        r#"{"time":"2016-06-02T20:40:00.123456789Z","msg":"m","id":7}"#,
        r#"{"ts":1464900000.123456789,"event":"m","id":"7"}"#,
        r#"{"@timestamp":1464900000123.456789,"message":"m","id":7}"#,
        r#"{"id":7,"msg":"m","timestamp":1464900000123456789,"time":1}"#,
    ] {
        let read = read(Format::Auto, line, &["id"]).unwrap();
        assert_eq!((read.at, read.message.as_str()), (AT, "m"), "{line}");
        assert_eq!(read.fields, some(&["7"]));
    }
}

#[test]
fn logfmt() {
    let line = r#"time=2016-06-02T20:40:00.123456789Z level=info msg="task \"a\" {done}" id=7 flag key.guid=g empty= q="x y""#;
    for format in [Format::Auto, Format::Logfmt] {
        let read = read(format, line, &["id", "key.guid", "empty", "q"]).unwrap();
        assert_eq!((read.at, read.message.as_str()), (AT, r#"task "a" {done}"#));
        assert_eq!(read.fields, some(&["7", "g", "", "x y"]));
    }
    let object = r#"ts=1464900000.123456789 msg=got id=7 body={"id":8,"msg":"m"}"#;
    let with_object = read(Format::Auto, object, &["id"]).unwrap();
    assert_eq!((with_object.at, &*with_object.message), (AT, "got"));
    assert_eq!(with_object.fields, some(&["7"]));
    let read = read(
        Format::Logfmt,
        "ts=1464900000.123456789 a=1 a=2",
        &["a", "flag"],
    )
    .unwrap();
    assert_eq!((read.at, read.message.as_str()), (AT, ""));
    assert_eq!(read.fields, [Some("2".into()), None]);
}

#[test]
fn data_comes_before_the_top() {
    let line = r#"{"ts":1464900000,"guid":"top","only":"top","data":{"guid":"data","only":null}}"#;
    let read = read(Format::Auto, line, &["guid", "only"]).unwrap();
    assert_eq!(read.fields, some(&["data", "top"]));
}

#[test]
fn nothing_of_a_line_stays_for_the_next() {
    let mut fields = Fields::new();
    let id = fields.register("id");
    let mut scanner = Scanner::new(fields);
    assert!(
        scanner
            .scan(
                Format::Auto,
                br#"{"ts":1,"id":7,"data":{"id":8},"msg":"m"}"#
            )
            .is_ok()
    );
    let line = scanner.scan(Format::Auto, b"ts=2").unwrap();
    assert_eq!((line.field(id), line.message().len()), (None, 0));
    // The start of this object is read before it turns out to be none.
    let line = scanner
        .scan(Format::Auto, br#"ts=3 {"id":7,"msg":"m""#)
        .unwrap();
    assert_eq!((line.at_unix_ns(), line.field(id)), (3_000_000_000, None));
}

#[test]
fn what_is_unreadable() {
    for line in [
        "",
        "panic: runtime error",
        "goroutine 1 [running]:",
        "a=1 b=2",
        "time=yesterday msg=x",
        r#"{"message":"no time"}"#,
        r#"{"timestamp":"soon","message":"x"}"#,
        r#"{"timestamp":"1464900000.1","message":"cut of"#,
        r#"time=2016-06-02T20:40:00Z msg="no end"#,
    ] {
        assert!(read(Format::Auto, line, &[]).is_none(), "{line}");
    }
    let json = r#"{"timestamp":1464900000}"#;
    assert!(read(Format::Logfmt, json, &[]).is_none());
    assert!(read(Format::Json, "time=1464900000", &[]).is_none());
    assert!(read(Format::Lager, "time=1464900000", &[]).is_none());
}

#[test]
fn a_line_is_read_up_to_its_bound() {
    let long = format!(
        "ts=1464900000 msg=m pad={} id=7",
        "x".repeat(MAX_LINE_BYTES)
    );
    let read = read(Format::Auto, &long, &["id"]).unwrap();
    assert_eq!((read.message.as_str(), &read.fields[0]), ("m", &None));
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut scanner = Scanner::new(Fields::new());
        for format in [Format::Auto, Format::Lager, Format::Json, Format::Logfmt] {
            let _ = scanner.scan(format, &bytes);
        }
    }

    #[test]
    fn never_panics_on_what_looks_like_a_line(
        text in r#"(ts|time|msg|"ts"|[={}:,"\\ ]|1|2016-06-02T20:40:00Z){0,20}"#
    ) {
        let mut scanner = Scanner::new(Fields::new());
        for format in [Format::Auto, Format::Lager, Format::Json, Format::Logfmt] {
            if let Ok(line) = scanner.scan(format, text.as_bytes()) {
                let _ = (line.message(), line.source(), line.field(FieldId::SOURCE));
            }
        }
    }

    #[test]
    fn logfmt_gives_back_what_was_written(value in ".{0,20}") {
        let quoted = value.replace('\\', r"\\").replace('"', r#"\""#);
        let line = format!("ts=1 a=\"{quoted}\" b=2");
        let read = read(Format::Logfmt, &line, &["a", "b"]).unwrap();
        prop_assert_eq!(read.fields, some(&[&value, "2"]));
    }
}
