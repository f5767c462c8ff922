//! What a BBS sends is printed as JSON or refused, and what people write is read or refused.
#![no_main]

use diego::json::{print, read, shapes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for shape in [&shapes::TASK, &shapes::DESIRED_LRP, &shapes::ACTUAL_LRP] {
        let printed = print(shape, data);
        for text in [printed.as_deref().ok(), std::str::from_utf8(data).ok()]
            .into_iter()
            .flatten()
        {
            let Ok(bytes) = read(shape, text) else {
                continue;
            };
            // What was read once is printed and read the same for ever.
            if let Ok(once) = print(shape, &bytes) {
                let again = read(shape, &once).expect("what was printed is read");
                assert_eq!(print(shape, &again).as_ref(), Ok(&once));
            }
        }
        if let Ok(text) = printed {
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
        }
    }
});
