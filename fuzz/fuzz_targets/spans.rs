//! Any bytes as posted spans: they are read or refused; what is read can be kept, written
//! and read again. The first byte chooses the form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use traces::names::Names;
use traces::{Decoded, Form, Origin, Store, StoreLimits, TraceFilter, jaeger, otlp, zipkin};
use traces::{decode, decode_posted, normalise};

fuzz_target!(|data: &[u8]| {
    let Some((form, body)) = data.split_first() else {
        return;
    };
    let (origin, names) = (Origin::unix(), &mut Names::default());
    let decoded = match form % 4 {
        0 => decode_posted(Form::Zipkin, body, &origin, names),
        1 => decode_posted(Form::OtlpJson, body, &origin, names),
        2 => decode_posted(Form::OtlpProtobuf, body, &origin, names),
        // Any form of a file, Jaeger's among them.
        _ => decode(body, &origin),
    };
    let Ok(Decoded { mut spans, .. }) = decoded else {
        return;
    };
    normalise(&mut spans);
    for span in &spans {
        assert!(span.end >= span.start && span.trace.0 != 0 && span.id.0 != 0);
    }
    let written = otlp::write_protobuf(&spans, &origin);
    let again = decode_posted(Form::OtlpProtobuf, &written, &origin, names);
    assert_eq!(again.map(|again| again.spans.len()).ok(), Some(spans.len()));
    let json = zipkin::write(&spans, &origin);
    assert!(decode_posted(Form::Zipkin, &json, &origin, names).is_ok());
    let json = jaeger::write(&spans, &origin);
    let again = decode(&json, &origin);
    assert_eq!(again.map(|again| again.spans.len()).ok(), Some(spans.len()));
    let store = Store::new(StoreLimits {
        spans: 8,
        ..StoreLimits::default()
    });
    store.extend(spans);
    assert!(store.counts().spans <= 8);
    let _ = (
        store.slowest(3, 0),
        store.since(0, 3),
        store.whole(&TraceFilter::ended(u64::MAX)),
    );
});
