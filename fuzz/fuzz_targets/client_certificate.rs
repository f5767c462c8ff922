//! Any bytes as a certificate: reading its subject never panics, and what is written of it
//! into a field of a request stays one value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing::http::identity::Caller;

fuzz_target!(|certificate: &[u8]| {
    let caller = Caller::new(0, certificate);
    let text = caller.envoy();
    assert!(text.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
    assert_eq!(text.matches('"').count(), 2);
    assert!(
        caller
            .identity
            .is_none_or(|identity| !identity.app.is_empty())
    );
});
