use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::models::{ActualLrPsResponse, ActualLrp, ActualLrpKey, Error};

/// What is read of a list that arrives in pieces that end at these places.
fn read(bytes: &[u8], cuts: &[usize]) -> (Vec<ActualLrp>, Result<(), ListError>) {
    let (mut records, mut found) = (Records::default(), Vec::new());
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut begin = 0;
    for end in ends {
        records.take(&bytes[begin..end], |record| found.push(record));
        begin = end;
    }
    (found, records.end())
}

fn record(process: &str, index: i32) -> ActualLrp {
    ActualLrp {
        actual_lrp_key: Some(ActualLrpKey {
            process_guid: process.to_owned(),
            index,
            domain: "domain".to_owned(),
        }),
        ..ActualLrp::default()
    }
}

fn list() -> impl Strategy<Value = ActualLrPsResponse> {
    let records = prop::collection::vec((".{0,300}", any::<i32>()), 0..8);
    (records, prop::option::of(".{0,40}")).prop_map(|(records, error)| ActualLrPsResponse {
        error: error.map(|message| Error {
            message,
            ..Error::default()
        }),
        actual_lrps: records
            .iter()
            .map(|(process, index)| record(process, *index))
            .collect(),
    })
}

proptest! {
    #[test]
    fn a_list_is_the_same_however_it_is_cut(list in list(), cuts in prop::collection::vec(any::<usize>(), 0..20)) {
        let (found, end) = read(&list.encode_to_vec(), &cuts);
        prop_assert_eq!(found, list.actual_lrps);
        prop_assert_eq!(end, list.error.map_or(Ok(()), |error| Err(ListError::Refused(error))));
    }

    #[test]
    fn a_list_that_breaks_off_within_a_record_is_none(
        list in list(),
        last in any::<usize>(),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let bytes = list.encode_to_vec();
        let part = &bytes[..last % (bytes.len() + 1)];
        let (found, end) = read(part, &cuts);
        prop_assert!(list.actual_lrps.starts_with(&found));
        let whole = ActualLrPsResponse::decode(part);
        prop_assert_eq!(matches!(end, Err(ListError::Malformed(_))), whole.is_err());
    }

    #[test]
    fn any_bytes_are_read_as_the_whole_message_is(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let (found, end) = read(&bytes, &cuts);
        prop_assert_eq!(read(&bytes, &[]).1.is_ok(), end.is_ok());
        if end.is_ok() {
            let whole = ActualLrPsResponse::decode(&bytes[..]);
            prop_assert_eq!(whole.map(|whole| whole.actual_lrps), Ok(found));
        }
    }
}

#[test]
fn fields_of_a_newer_bbs_are_passed_over() {
    // Field 3 as a number, 4 as eight bytes, 5 as text, 6 as four bytes.
    let mut bytes = vec![
        0x18, 0x96, 0x01, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2a, 2, b'h', b'i', 0x35, 0, 0, 0, 0,
    ];
    let known = ActualLrPsResponse {
        error: None,
        actual_lrps: vec![record("p", 1)],
    };
    bytes.extend(known.encode_to_vec());
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read(&bytes, &every), (known.actual_lrps, Ok(())));
}

#[test]
fn what_is_no_list_is_told() {
    let of = |bytes: &[u8]| read(bytes, &[]).1.unwrap_err().to_string();
    assert_eq!(of(&[0x13]), "field 2 has the wire type 3");
    assert_eq!(of(&[0x10, 1]), "field 2 is no message");
    assert_eq!(of(&[0xff; 11]), "a number is longer than ten bytes");
    assert_eq!(of(b"\x12\x05abc"), "the list ends within a record");
    let endless = [
        0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
    ];
    assert_eq!(of(&endless), format!("field 2 claims {} bytes", u64::MAX));
}
