//! Any bytes as the body of a call of the routing API: checking them never panics, and
//! what is kept is read again as what it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing_api::model::{HttpRoute, RouterGroup, TcpMapping, read_list, read_object};

const LONGEST: i64 = 120;

fuzz_target!(|body: &[u8]| {
    for mut route in read_list::<HttpRoute>(body).unwrap_or_default() {
        if route.check_upsert(LONGEST).is_ok() {
            let written = serde_json::to_vec(&[&route]).expect("a route is written");
            assert_eq!(read_list::<HttpRoute>(&written).expect("and read"), [route]);
        }
    }
    for mut mapping in read_list::<TcpMapping>(body).unwrap_or_default() {
        if mapping.check_upsert(LONGEST).is_ok() {
            let written = serde_json::to_vec(&[&mapping]).expect("a mapping is written");
            assert_eq!(
                read_list::<TcpMapping>(&written).expect("and read"),
                [mapping]
            );
        }
    }
    if let Ok(group) = read_object::<RouterGroup>(body) {
        let _ = group.check();
    }
});
