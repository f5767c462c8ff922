use proptest::prelude::*;

use super::*;

fn proxied(length: usize, source: &str, destination: &str) -> Result<Header, HeaderError> {
    Ok(Header::Proxied {
        length,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    })
}

/// Whole, it gives the expected; cut off anywhere, it goes on.
fn check(header: &[u8], expected: Result<Header, HeaderError>) {
    let input = [header, b"GET / HTTP/1.1\r\n\r\n"].concat();
    assert_eq!(read(&input), expected, "{header:?}");
    for cut in 0..header.len() {
        assert_eq!(
            read(&header[..cut]),
            Ok(Header::NeedMore),
            "{header:?}, {cut}"
        );
    }
}

#[test]
fn version_1_is_read() {
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n";
    check(
        line,
        proxied(line.len(), "192.0.2.1:56324", "198.51.100.7:443"),
    );
    let line = b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
    check(line, proxied(line.len(), "[2001:db8::1]:1", "[::1]:65535"));
    for line in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ::1 ::1 65535 65535\r\n"] {
        check(line.as_bytes(), Ok(Header::Local { length: line.len() }));
    }
}

#[test]
fn version_2_is_read() {
    let header = |command: u8, family: u8, payload: &[u8]| {
        let length = (payload.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, payload].concat()
    };
    let addition = [4, 0, 1, 9];
    let four = [&[192, 0, 2, 1, 10, 0, 0, 2, 0xdc, 4, 0, 80][..], &addition].concat();
    let tcp4 = header(0x21, 0x11, &four);
    check(&tcp4, proxied(tcp4.len(), "192.0.2.1:56324", "10.0.0.2:80"));
    let mut six = [0; 36];
    (six[15], six[31], six[33], six[35]) = (1, 2, 3, 4);
    let tcp6 = header(0x21, 0x21, &six);
    check(&tcp6, proxied(tcp6.len(), "[::1]:3", "[::2]:4"));
    for local in [
        header(0x20, 0, &[]),
        header(0x20, 0x11, &four),
        header(0x21, 0x31, &[0; 216]),
    ] {
        check(
            &local,
            Ok(Header::Local {
                length: local.len(),
            }),
        );
    }
    for broken in [
        header(0x11, 0x11, &four),
        header(0x22, 0x11, &four),
        header(0x21, 0x11, &four[..11]),
        header(0x21, 0x21, &six[..35]),
        header(0x21, 0x11, &[0; 4090]),
    ] {
        assert_eq!(read(&broken), Err(HeaderError::Binary));
    }
}

#[test]
fn without_a_header_the_bytes_are_the_clients() {
    for bytes in ["GET / HTTP/1.1\r\n", "PRoXY TCP4", "PUT", "\r\n\r\nGET"] {
        assert_eq!(read(bytes.as_bytes()), Ok(Header::Absent));
    }
    for bytes in ["", "P", "PROXY", "\r\n\r\n"] {
        assert_eq!(read(bytes.as_bytes()), Ok(Header::NeedMore));
    }
}

#[test]
fn lines_that_are_none_are_refused() {
    for line in [
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 +1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 01 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.7 65536 443\r\n",
        "PROXY TCP4 ::1 198.51.100.7 1 443\r\n",
        "PROXY TCP6 192.0.2.1 ::1 1 443\r\n",
        "PROXY  TCP4 192.0.2.1 198.51.100.7 1 443\r\n",
        "PROXY UDP4 192.0.2.1 198.51.100.7 1 443\r\n",
    ] {
        assert_eq!(read(line.as_bytes()), Err(HeaderError::Line), "{line}");
    }
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(120));
    assert_eq!(read(long.as_bytes()), Err(HeaderError::Line));
}

proptest! {
    /// No bytes make it panic, and a header is no longer than its input.
    #[test]
    fn anything_may_come(two: bool, rest in prop::collection::vec(any::<u8>(), 0..120)) {
        let start: &[u8] = if two { SIGNATURE } else { b"PROXY TCP4 " };
        let input = [start, &rest].concat();
        if let Ok(Header::Local { length } | Header::Proxied { length, .. }) = read(&input) {
            prop_assert!(length <= input.len());
        }
    }
}
