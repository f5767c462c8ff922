//! Any header fields as a trace's context: what is read is whole or nothing, and reads the
//! same when it is written again. Lines of the input are fields.

#![no_main]

use libfuzzer_sys::fuzz_target;
use traces::context::{Forms, Outgoing, PASSED_BYTES, read, write};
use wire::http1::fields;

fuzz_target!(|data: &[u8]| {
    let mut passed = Vec::new();
    let input: Vec<_> = fields(data).collect();
    let context = read(input.into_iter(), &mut passed);
    assert_eq!(context.trace.0 == 0, context.parent.0 == 0);
    assert!(passed.len() <= PASSED_BYTES);
    // What is passed on is lines, each of which is a field.
    assert!(passed.is_empty() || passed.ends_with(b"\r\n"));
    let lines = passed.split(|byte| *byte == b'\n').count() - 1;
    assert_eq!(lines, fields(&passed).count());
    if context.trace.0 == 0 {
        return;
    }
    let outgoing = Outgoing {
        trace: context.trace,
        span: context.parent,
        parent: context.parent,
        sampled: context.sampled.unwrap_or(true),
        debug: context.debug,
        passed: b"",
    };
    for w3c in [true, false] {
        let (mut out, mut rest) = (Vec::new(), Vec::new());
        let forms = Forms { w3c, b3: !w3c };
        write(forms, &outgoing, &mut out);
        let lines: Vec<_> = fields(&out).collect();
        let again = read(lines.into_iter(), &mut rest);
        assert_eq!((again.trace, again.parent), (context.trace, context.parent));
        assert!(context.sampled.is_none() || again.sampled == context.sampled);
    }
});
