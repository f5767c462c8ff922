use proptest::prelude::*;

use super::*;
use crate::http2::codec::fields::Fields;

fn decoded(decoder: &mut Decoder, block: &[u8]) -> (Result<Decoded, Unreadable>, Fields) {
    let mut fields = Fields::default();
    (decoder.decode(block, &mut fields, 16 * 1024), fields)
}

fn lines(fields: &Fields) -> String {
    String::from_utf8_lossy(fields.lines()).replace("\r\n", "|")
}

/// RFC 7541 appendix C.3 (without Huffman's code) and C.4 (with it).
#[test]
fn requests_of_the_standard() {
    let plain: [&[u8]; 3] = [
        b"\x82\x86\x84\x41\x0fwww.example.com",
        b"\x82\x86\x84\xbe\x58\x08no-cache",
        b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
    ];
    let coded: [&[u8]; 3] = [
        b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
        b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        let expected = [
            (&b"http"[..], &b"/"[..], "", 57),
            (b"http", b"/", "cache-control: no-cache|", 110),
            (b"https", b"/index.html", "custom-key: custom-value|", 164),
        ];
        for (block, (scheme, path, rest, size)) in blocks.into_iter().zip(expected) {
            let (result, fields) = decoded(&mut decoder, block);
            assert_eq!(result, Ok(Decoded::Good));
            assert_eq!(fields.method(), b"GET");
            assert_eq!(fields.scheme(), Some(scheme));
            assert_eq!(fields.authority(), Some(&b"www.example.com"[..]));
            assert_eq!(fields.path(), Some(path));
            assert_eq!(lines(&fields), rest);
            assert_eq!(decoder.table_size(), size);
        }
    }
}

/// RFC 7541 appendix C.5 and C.6, whose table has 256 bytes.
#[test]
fn answers_of_the_standard() {
    let plain: [&[u8]; 3] = [
        b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com",
        b"\x48\x03307\xc1\xc0\xbf",
        b"\x88\xc1\x61\x1dMon, 21 Oct 2013 20:13:22 GMT\xc0\x5a\x04gzip\x77\x38foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];
    let coded: [&[u8]; 3] = [
        b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
        b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
        b"\x88\xc1\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x84\xa6\x2d\x1b\xff\xc0\x5a\x83\x9b\xd9\xab\x77\xad\x94\xe7\x82\x1d\xd7\xf2\xe6\xc7\xb3\x35\xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\x36\x72\xc1\xab\x27\x0f\xb5\x29\x1f\x95\x87\x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\x3d\x50\x07",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        // A block that makes the table as small as in the standard's examples.
        let (resized, _) = decoded(&mut decoder, b"\x3f\xe1\x01");
        assert_eq!(resized, Ok(Decoded::Good));
        let first = "cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT|location: https://www.example.com|";
        let third = "cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT|location: https://www.example.com|content-encoding: gzip|set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1|";
        let expected = [(302, first, 222), (307, first, 222), (200, third, 215)];
        for (block, (status, rest, size)) in blocks.into_iter().zip(expected) {
            let (result, fields) = decoded(&mut decoder, block);
            assert_eq!(result, Ok(Decoded::Good));
            assert_eq!(fields.status(), Some(status));
            assert_eq!(lines(&fields), rest);
            assert_eq!(decoder.table_size(), size);
        }
    }
}

#[test]
fn what_cannot_be_read() {
    for block in [
        // No entry, a size that is not allowed or in the middle, broken integers and texts.
        &b"\x80"[..],
        b"\xbe",
        b"\x3f\xe2\x1f",
        b"\x82\x20",
        b"\xff\xff\xff\xff\xff\x01",
        b"\x00",
        b"\x00\x05abc",
        b"\x00\x81\xff\x00",
        b"\x41",
    ] {
        let (result, _) = decoded(&mut Decoder::default(), block);
        assert_eq!(result, Err(Unreadable), "{block:?}");
    }
}

#[test]
fn malformed_fields_are_told_and_kept_in_the_table() {
    let mut decoder = Decoder::default();
    for block in [
        &b"\x40\x05X-Bad\x01a"[..],
        b"\x40\x01x\x01\x00",
        b"\xbe",
        b"\xbf",
        b"\x00\x00\x01a",
        // A pseudo-header field behind another field, and one that comes twice.
        b"\x00\x01x\x01a\x82",
        b"\x82\x83",
        b"\x00\x02te\x04gzip",
        b"\x00\x0econtent-length\x011\x00\x0econtent-length\x012",
        b"\x9c",
    ] {
        let (result, _) = decoded(&mut decoder, block);
        assert_eq!(result, Ok(Decoded::Malformed), "{block:?}");
    }
    let twice = b"\x00\x0econtent-length\x011\x00\x0econtent-length\x011";
    let (result, fields) = decoded(&mut decoder, twice);
    assert_eq!(
        (result, fields.content_length()),
        (Ok(Decoded::Good), Some(1))
    );
    assert_eq!(decoder.table_size(), (5 + 1 + 32) + (1 + 1 + 32));
}

/// A few bytes that stand for many: no more is kept than may be, and the table stays right.
#[test]
fn a_bomb_is_too_large() {
    let mut decoder = Decoder::default();
    let value = [b'x'; 3000];
    let mut block = b"\x40\x01x\x7f\xb9\x16".to_vec();
    block.extend_from_slice(&value);
    block.extend_from_slice(&[0xbe; 10_000]);
    let (result, fields) = decoded(&mut decoder, &block);
    assert_eq!(result, Ok(Decoded::TooLarge));
    assert!(fields.memory() <= 16 * 1024);
    let (result, fields) = decoded(&mut decoder, b"\xbe");
    assert_eq!(
        (result, fields.get(b"x")),
        (Ok(Decoded::Good), Some(&value[..]))
    );
}

#[derive(Debug, Clone)]
enum Step {
    Head(Vec<(Vec<u8>, Vec<u8>)>),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = prop_oneof![
        Just("x-a"),
        Just("Content-Type"),
        Just("server"),
        Just("set-cookie"),
        Just("x-much-longer-name"),
    ];
    let value = prop_oneof![
        Just(b"same".to_vec()),
        Just(vec![b'v'; 900]),
        prop::collection::vec(b' '..b'~', 0..40),
    ];
    let field = (name.prop_map(|name| name.as_bytes().to_vec()), value);
    prop_oneof![
        9 => prop::collection::vec(field, 0..12).prop_map(Step::Head),
        1 => (0..5000_usize).prop_map(Step::Resize),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(steps in prop::collection::vec(step(), 1..40)) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for step in steps {
            let fields = match step {
                Step::Resize(most) => {
                    encoder.resize(most);
                    continue;
                }
                Step::Head(fields) => fields,
            };
            let mut out = Vec::new();
            let mut block = encoder.begin(&mut out);
            block.status(503);
            for (name, value) in &fields {
                block.field(name, value);
            }
            let mut found = Fields::default();
            prop_assert_eq!(decoder.decode(&out, &mut found, usize::MAX), Ok(Decoded::Good));
            prop_assert_eq!(found.status(), Some(503));
            let expected: Vec<_> = fields
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect();
            let found: Vec<_> = found
                .iter()
                .map(|field| (field.name.to_vec(), field.value.to_vec()))
                .collect();
            prop_assert_eq!(found, expected);
            prop_assert!(decoder.table_size() <= LARGEST_TABLE);
        }
    }

    #[test]
    fn any_bytes_are_read_or_not(blocks: Vec<Vec<u8>>) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let mut fields = Fields::default();
            if decoder.decode(&block, &mut fields, 500).is_err() {
                break;
            }
            prop_assert!(fields.memory() < 2000);
        }
    }
}

/// What repeats is one byte from the third time on; secrets never enter a table.
#[test]
fn what_repeats_is_short() {
    let mut encoder = Encoder::default();
    let mut lengths = Vec::new();
    for _ in 0..4 {
        let mut out = Vec::new();
        let mut block = encoder.begin(&mut out);
        block.status(200);
        block.field(b"Server", b"headroom");
        block.field(b"x-b", b"c");
        lengths.push(out.len());
    }
    assert_eq!(lengths[2..], [3, 3]);
    for _ in 0..3 {
        let mut out = Vec::new();
        encoder.begin(&mut out).field(b"cookie", b"a=b");
        assert_eq!(out, b"\x1f\x11\x03a=b");
    }
}
