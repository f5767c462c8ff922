//! Decoding of event streams.

use proptest::prelude::*;

use super::*;

#[test]
fn what_the_server_writes_is_read() {
    let mut decoder = Decoder::default();
    let text = b": hello\n\nid: 0\nevent: Upsert\ndata: {\"a\":1}\n\nid: 1\nevent:Delete\ndata: x\ndata: y\n\nid";
    let events = decoder.feed(text).unwrap();
    let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
    assert_eq!(
        events,
        [pair("Upsert", "{\"a\":1}"), pair("Delete", "x\ny")]
    );
}

#[test]
fn an_endless_event_is_an_error() {
    let mut decoder = Decoder::default();
    let piece = vec![b'x'; 64 << 10];
    let fed = (0..17).try_for_each(|_| decoder.feed(&piece).map(drop));
    assert!(fed.is_err());
}

proptest! {
    #[test]
    fn events_survive_any_cut(data in proptest::collection::vec("[ -~]{1,40}", 0..8), cut in 1usize..40) {
        let text: String = data.iter().enumerate()
            .map(|(id, data)| format!("id: {id}\nevent: Upsert\ndata: {data}\n\n"))
            .collect();
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for piece in text.as_bytes().chunks(cut) {
            seen.extend(decoder.feed(piece).unwrap().into_iter().map(|(_, data)| data));
        }
        prop_assert_eq!(seen, data);
    }

    #[test]
    fn any_bytes_are_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoder::default().feed(&bytes);
    }
}
