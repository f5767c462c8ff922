//! First bytes of a connection: the name in a `ClientHello` and the PROXY protocol. Neither
//! reader may panic; what was decided from a part of the bytes stays decided with more.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::proxy_protocol::{self, Header};
use wire::tls::{Hello, client_hello_name};

fuzz_target!(|data: &[u8]| {
    let [cut, input @ ..] = data else {
        return;
    };
    let part = &input[..input.len().min(usize::from(*cut))];
    match client_hello_name(part) {
        Hello::NeedMore => {}
        decided => assert_eq!(client_hello_name(input), decided),
    }
    match proxy_protocol::read(part) {
        Ok(Header::NeedMore) => {}
        decided => assert_eq!(proxy_protocol::read(input), decided),
    }
});
