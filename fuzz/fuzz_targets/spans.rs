//! Any bytes as posted spans: they are read or refused; what is read can be kept, written
//! and read again. The first byte chooses the form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use traces::names::Names;
use traces::{Origin, Store, StoreLimits, Wanted, jaeger, otlp, zipkin};

fuzz_target!(|data: &[u8]| {
    let Some((form, body)) = data.split_first() else {
        return;
    };
    let (origin, names) = (Origin::unix(), &mut Names::default());
    let read = match form % 5 {
        0 => zipkin::read(body, &origin, names),
        1 => otlp::read_json(body, &origin, names),
        2 => jaeger::read(body, &origin, names),
        3 => traces::read(body, &origin),
        _ => otlp::read_protobuf(body, &origin, names),
    };
    let Ok(spans) = read else {
        return;
    };
    for span in &spans {
        assert!(span.end >= span.start && span.trace.0 != 0 && span.id.0 != 0);
    }
    let written = otlp::write_protobuf(&spans, &origin);
    let again = otlp::read_protobuf(&written, &origin, names);
    assert_eq!(again.map(|spans| spans.len()).ok(), Some(spans.len()));
    let json = zipkin::write(&spans, &origin);
    assert!(zipkin::read(&json, &origin, names).is_ok());
    let json = jaeger::write(&spans, &origin);
    let again = jaeger::read(&json, &origin, names);
    assert_eq!(again.map(|spans| spans.len()).ok(), Some(spans.len()));
    let store = Store::new(StoreLimits {
        spans: 8,
        ..StoreLimits::default()
    });
    store.extend(spans);
    assert!(store.counts().spans <= 8);
    let _ = (
        store.slowest(3, 0),
        store.since(0, 3),
        store.whole(&Wanted::ended(u64::MAX)),
    );
});
