//! Any bytes as an inventory and as the file that signs it: what is read keeps within its limits,
//! and what is written of it is read again.

#![no_main]

use compliance::inventory::{InventorySignature, Limits, NodeFacts, write};
use libfuzzer_sys::fuzz_target;

/// Small, so that they are reached.
const LIMITS: Limits = Limits {
    bytes: 16_384,
    depth: 6,
    elements: 200,
    text_bytes: 2_048,
};

fuzz_target!(|data: &[u8]| {
    if let Ok(signature) = InventorySignature::parse(data) {
        let again = InventorySignature::parse(signature.to_file().as_bytes());
        assert_eq!(again, Ok(signature));
    }
    let Ok(facts) = NodeFacts::read(data, &LIMITS) else {
        return;
    };
    assert!(facts.node.check().is_ok());
    assert!(facts.inventory.check(&facts.node.id).is_ok());
    let again = NodeFacts::read(write(&facts).as_bytes(), &Limits::default()).expect("as written");
    assert_eq!(
        (again.node.id, again.node.hostname),
        (facts.node.id, facts.node.hostname)
    );
    assert_eq!(again.certificate, facts.certificate);
});
