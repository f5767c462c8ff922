use proptest::prelude::*;

use super::*;

const ARRIVED: i64 = 1_700_000_000_250_000_000;

fn line(message: &str) -> String {
    String::from_utf8(syslog_line(message.as_bytes(), ARRIVED).into_owned()).unwrap()
}

#[test]
fn a_message_that_is_json_is_a_line_by_itself() {
    let json = r#"{"time":1,"msg":"paid","id":"a"}"#;
    for head in [
        "",
        "<134>",
        "<134>1 2026-11-26T18:04:05.5Z host shop 42 - - ",
        "<134>1 2026-11-26T18:04:05.5Z host shop 42 ID47 [a@1 b=\"x ] \\\" y\"][c@2 d=\"e\"] \u{feff}",
        "<13>Nov 26 18:04:05 host shop[42]: ",
        "<13>Nov  6 18:04:05 shop: ",
        "<13>2026-11-26T18:04:05Z host shop[42]: ",
        "<13>2026-11-26T18:04:05.123456+02:00 host shop: ",
        "<13>shop: ",
    ] {
        assert_eq!(line(&format!("{head}{json}\n")), json, "{head}");
    }
    assert_eq!(line("<13>{\"a\":1,\n\"b\":2}\n"), "{\"a\":1, \"b\":2}");
}

#[test]
fn any_other_message_becomes_json_with_its_time() {
    assert_eq!(
        line("<134>1 2026-11-26T18:04:05.25+02:00 host shop 42 - - order 7 \"paid\""),
        r#"{"message":"order 7 \"paid\"","source":"shop","timestamp":"1795709045.250000000"}"#
    );
    assert_eq!(
        line("<134>2026-11-26T18:04:05.25+02:00 host shop[42]: order 7 paid"),
        r#"{"message":"order 7 paid","source":"shop","timestamp":"1795709045.250000000"}"#
    );
    // The older form knows neither year nor offset.
    for head in [
        "<13>Nov 26 18:04:05 host shop[42]: ",
        "<13>Nov 26 18:04:05 shop: ",
    ] {
        assert_eq!(
            line(&format!("{head}order 7 paid")),
            r#"{"message":"order 7 paid","source":"shop","timestamp":"1700000000.250000000"}"#
        );
    }
    assert_eq!(
        line("<13>1 - - - - - - up"),
        r#"{"message":"up","source":"","timestamp":"1700000000.250000000"}"#
    );
    // What is no message of syslog is left as it is.
    for text in ["time=1 msg=up", "<x>up", "<1234>up", "plain", ""] {
        assert_eq!(line(text), text);
    }
}

#[test]
fn what_came_of_them_is_read_as_a_line() {
    let mut scanner = crate::Scanner::new(crate::Fields::new());
    let text = line("<134>1 2026-11-26T18:04:05.25Z host shop 42 - - order 7 paid");
    let read = scanner.scan(crate::Format::Auto, text.as_bytes()).unwrap();
    assert_eq!(read.at_unix_ns(), 1_795_716_245_250_000_000);
    assert_eq!(&*read.message(), b"order 7 paid");
}

#[test]
fn entries_of_the_journal_are_lines() {
    let read = |entry: &str| {
        let line = journal_line(entry.as_bytes());
        line.map(|line| String::from_utf8(line).unwrap())
    };
    let entry =
        r#"{"MESSAGE":"{\"time\":1,\"msg\":\"paid\"}","__REALTIME_TIMESTAMP":"1795716063055428"}"#;
    assert_eq!(read(entry).unwrap(), r#"{"time":1,"msg":"paid"}"#);
    let entry = r#"{"MESSAGE":"order 7 paid","SYSLOG_IDENTIFIER":"shop","__REALTIME_TIMESTAMP":"1795716063055428"}"#;
    assert_eq!(
        read(entry).unwrap(),
        r#"{"message":"order 7 paid","source":"shop","timestamp":"1795716063.055428000"}"#
    );
    // When it was written counts, not when the journal took it; bytes that are no text come as a list.
    let entry = r#"{"MESSAGE":[117,112,255],"_SOURCE_REALTIME_TIMESTAMP":"1795716063000001","__REALTIME_TIMESTAMP":"1795716064000000"}"#;
    assert_eq!(
        read(entry).unwrap(),
        "{\"message\":\"up\u{fffd}\",\"source\":\"\",\"timestamp\":\"1795716063.000001000\"}"
    );
    for wrong in [
        "",
        "{}",
        r#"{"MESSAGE":null,"__REALTIME_TIMESTAMP":"1"}"#,
        r#"{"MESSAGE":"x"}"#,
        r#"{"MESSAGE":"x","__REALTIME_TIMESTAMP":"soon"}"#,
        r#"{"MESSAGE":[256],"__REALTIME_TIMESTAMP":"1"}"#,
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

/// The messages of a stream that comes in such pieces.
fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let (mut stream, mut found) = (SyslogStream::default(), Vec::new());
    for piece in pieces {
        stream.push(piece, |message| found.push(message.to_vec()));
    }
    stream.end(|message| found.push(message.to_vec()));
    found
}

#[test]
fn messages_end_with_a_line_or_have_their_length_before_them() {
    let found = messages(std::iter::once(&b"<1>a\n{}\n\n7 <1>b\nc!5 <1>de\n12"[..]));
    let expected: [&[u8]; 6] = [b"<1>a", b"{}", b"", b"<1>b\nc!", b"<1>de", b"\n12"];
    assert_eq!(found[..5], expected[..5]);
    // The line end behind a counted message is a line without anything.
    assert_eq!(found[5..], [b"".to_vec(), b"12".to_vec()]);
}

#[test]
fn of_what_is_too_long_the_rest_is_dropped() {
    let long = MAX_LINE_BYTES + 5000;
    let mut text = vec![b'x'; long];
    text.extend_from_slice(b"\nnext\n");
    text.extend_from_slice(format!("{} <1>", long + 3).as_bytes());
    text.extend_from_slice(&vec![b'y'; long]);
    text.extend_from_slice(b"6 <1>end");
    for size in [1000, 1 << 16, usize::MAX] {
        let found = messages(text.chunks(size.min(text.len())));
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(
            lengths,
            [MAX_LINE_BYTES + 1, 4, MAX_LINE_BYTES + 1, 6],
            "{size}"
        );
        assert_eq!((&*found[1], &*found[3]), (&b"next"[..], &b"<1>end"[..]));
    }
}

proptest! {
    #[test]
    fn pieces_are_read_as_the_whole(
        text in "([0-9]{1,3} <[0-9]>[a-z\n]{0,9}|<[0-9]{1,3}>[a-z ]{0,9}\n|[a-z{} ]{0,9}\n|[0-9 <>\n]{0,9}){0,12}",
        size in 1usize..40,
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(messages(bytes.chunks(size)), messages(std::iter::once(bytes)));
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), head in "(<[0-9]{0,4}>)?(1 )?") {
        let message = [head.as_bytes(), &bytes].concat();
        let line = syslog_line(&message, ARRIVED);
        prop_assert!(!line.contains(&b'\n'));
        journal_line(&message);
    }
}
