use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

proptest! {
    /// A table with a layer over it says what the table says once the layer is part of it.
    #[test]
    fn a_layer_reads_as_the_table_will_once_it_is_merged(
        below in prop::collection::btree_map(0_u8..20, 0_u8..100, 0..10),
        changes in prop::collection::vec((0_u8..20, prop::option::of(0_u8..100)), 0..20),
        from in 0_u8..20,
        most in 0_u8..20,
    ) {
        let mut layer = Layer::default();
        for (key, value) in &changes {
            layer.put(*key, *value);
        }
        prop_assert_eq!(layer.is_empty(), changes.is_empty());
        let seen: Vec<_> = (0..20).map(|key| layer.get(&below, &key).copied()).collect();
        let sorted = |values: &mut dyn Iterator<Item = &u8>| {
            let mut values: Vec<u8> = values.copied().collect();
            values.sort_unstable();
            values
        };
        let values = sorted(&mut layer.values(&below));
        let within = sorted(&mut layer.range(&below, &from, |key| *key <= most));

        let mut hashed: HashMap<u8, u8> = below.clone().into_iter().collect();
        let mut merged = below.clone();
        for (key, value) in layer.changes() {
            hashed.set(*key, value.copied());
        }
        layer.merge_into(&mut merged);
        prop_assert_eq!(&hashed, &merged.clone().into_iter().collect());
        let is: Vec<_> = (0..20).map(|key| merged.get(&key).copied()).collect();
        prop_assert_eq!(seen, is);
        prop_assert_eq!(values, sorted(&mut merged.values()));
        let range = (from..=most.max(from)).filter(|key| *key <= most);
        let is: Vec<_> = range.filter_map(|key| merged.get(&key)).collect();
        prop_assert_eq!(within, sorted(&mut is.into_iter()));
    }
}

#[test]
fn an_edit_begins_with_what_is_below_and_leaves_that_alone() {
    let below = BTreeMap::from([("a", vec![1])]);
    let mut layer = Layer::default();
    layer.edit(&below, "a").push(2);
    layer.edit(&below, "a").push(3);
    layer.edit(&below, "b").push(4);
    assert_eq!(layer.get(&below, "a"), Some(&vec![1, 2, 3]));
    assert_eq!(layer.get(&below, "b"), Some(&vec![4]));
    assert_eq!(below["a"], [1]);
    // What was removed in this layer is not what is below any more.
    layer.put("a", None);
    assert_eq!(layer.edit(&below, "a"), &Vec::<i32>::new());
}
