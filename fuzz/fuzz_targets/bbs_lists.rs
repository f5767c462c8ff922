//! A list of the BBS, whole and split: the same is read, and it is what the whole message holds.
//! The first byte says where to split.

#![no_main]

use diego::list::{ListError, Records};
use diego::models::{ActualLrPsResponse, ActualLrp};
use libfuzzer_sys::fuzz_target;
use prost::Message;

fn read(input: &[u8], step: usize) -> (Vec<ActualLrp>, Result<(), ListError>) {
    let (mut records, mut found) = (Records::default(), Vec::new());
    for piece in input.chunks(step) {
        records.take(piece, |record| found.push(record));
    }
    (found, records.end())
}

fuzz_target!(|data: &[u8]| {
    if let [step, input @ ..] = data {
        let (found, end) = read(input, usize::from(*step).max(1));
        let one_by_one = read(input, 1);
        assert_eq!((&found, &end), (&one_by_one.0, &one_by_one.1));
        if end.is_ok() {
            let whole = ActualLrPsResponse::decode(input).expect("a whole message");
            assert_eq!(whole.actual_lrps, found);
        }
    }
});
