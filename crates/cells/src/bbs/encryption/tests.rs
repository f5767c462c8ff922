use std::collections::HashSet;

use proptest::prelude::*;

use super::admission::Admitted;
use super::vault::OpenError;
use super::*;

fn keys(active: &str, labels: &[(&str, &str)]) -> EncryptionKeys {
    let keys: serde_json::Map<String, serde_json::Value> = labels
        .iter()
        .map(|(label, key)| ((*label).to_owned(), (*key).into()))
        .collect();
    let file = serde_json::json!({
        "active_key_label": active,
        "encryption_keys": keys,
        "listen_address": "0.0.0.0:8889",
    });
    EncryptionKeys::parse(file.to_string().as_bytes()).unwrap()
}

fn vault(active: &str, labels: &[(&str, &str)]) -> Vault {
    Vault::new(keys(active, labels))
}

#[test]
fn a_file_that_cannot_be_used_is_refused_without_a_word_of_its_keys() {
    for (file, expected) in [
        (
            r#"{"active_key_label":"a","encryption_keys":"hush"}"#,
            "line 1",
        ),
        (
            r#"{"active_key_label":"a","encryption_keys":{"a":["hush"]}}"#,
            "line 1",
        ),
        (
            r#"{"encryption_keys":{"a":"hush"}}"#,
            "expected {\"active_key_label\"",
        ),
        (
            r#"{"active_key_label":"b","encryption_keys":{"a":"hush"}}"#,
            "no such key, only: \"a\"",
        ),
        (
            r#"{"active_key_label":"","encryption_keys":{"":"hush"}}"#,
            "1 to 127 bytes",
        ),
        (
            r#"{"active_key_label":"a","encryption_keys":{"a":""}}"#,
            "\"a\" is empty",
        ),
        ("hush", "line 1"),
    ] {
        let error = EncryptionKeys::parse(file.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("hush"), "{error}");
    }
    let shown = format!("{:?}", keys("a", &[("a", "hush"), ("b", "psst")]));
    assert_eq!(
        shown,
        r#"EncryptionKeys { active: "a", labels: ["a", "b"] }"#
    );
}

proptest! {
    /// What was encrypted is read with its key and at its place, and nowhere else.
    #[test]
    fn a_value_is_read_where_it_was_written(
        value in prop::collection::vec(any::<u8>(), 0..200),
        id in any::<i64>(),
        flip in any::<prop::sample::Index>(),
    ) {
        let mut writer = vault("a", &[("a", "first")]);
        let stored = writer.seal(Column::Info, id, &value).unwrap();
        let mut reader = vault("b", &[("a", "first"), ("b", "second")]);
        prop_assert_eq!(reader.open("a", Column::Info, id, &stored).unwrap(), value);
        let wrong = Err(OpenError::Wrong("a".into()));
        prop_assert_eq!(reader.open("a", Column::Rest, id, &stored), wrong.clone());
        prop_assert_eq!(reader.open("a", Column::Info, id.wrapping_add(1), &stored), wrong.clone());
        let mut altered = stored.clone();
        altered[flip.index(stored.len())] ^= 1;
        prop_assert_eq!(reader.open("a", Column::Info, id, &altered), wrong.clone());
        prop_assert_eq!(reader.open("a", Column::Info, id, &stored[..flip.index(stored.len())]), wrong.clone());
        let unknown = vault("b", &[("b", "second")]).open("a", Column::Info, id, &stored);
        prop_assert_eq!(unknown, Err(OpenError::Unknown("a".into())));
        let other = vault("a", &[("a", "second")]).open("a", Column::Info, id, &stored);
        prop_assert_eq!(other, wrong);
    }
}

#[test]
fn no_two_values_share_key_and_nonce_whoever_wrote_them() {
    let mut seen = HashSet::new();
    // The same file, started again and again, as after a copy of the database was put back.
    for _ in 0..20 {
        let mut vault = vault("a", &[("a", "first")]);
        for _ in 0..500 {
            let stored = vault.seal(Column::Task, 1, b"the same").unwrap();
            assert!(seen.insert(stored[1..29].to_vec()));
        }
    }
}

fn list(vault: &mut Vault) -> Vec<Listed> {
    admit(Some(vault), &[]).unwrap().new
}

#[test]
fn a_store_says_which_keys_it_needs() {
    let mut first = vault("a", &[("a", "first")]);
    // Without keys, then with some.
    assert_eq!(admit(None, &[]), Ok(Admitted::default()));
    let mut listed = list(&mut first);
    let labels: Vec<&str> = listed.iter().map(|listed| &*listed.label).collect();
    assert_eq!(labels, ["", "a"]);
    // Until all is encrypted anew it is tried again.
    let again = admit(Some(&mut first), &listed).unwrap();
    assert_eq!((again.new, again.reencrypt), (vec![], true));
    listed.remove(0);
    assert_eq!(admit(Some(&mut first), &listed), Ok(Admitted::default()));

    let error = admit(None, &listed).unwrap_err().to_string();
    assert!(
        error.contains("\"a\": start with --encryption-keys"),
        "{error}"
    );
    let error = admit(Some(&mut vault("b", &[("b", "2")])), &listed).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("the key \"a\", and --encryption-keys has only \"b\""),
        "{error}"
    );
    let error = admit(Some(&mut vault("a", &[("a", "2")])), &listed).unwrap_err();
    assert_eq!(error, EncryptionError::Other("a".into()));

    let mut both = vault("b", &[("a", "first"), ("b", "2")]);
    let next = admit(Some(&mut both), &listed).unwrap();
    assert!(next.reencrypt);
    assert_eq!(next.new.len(), 1);
    listed.extend(next.new);
    assert!(admit(Some(&mut both), &listed).unwrap().reencrypt);
    // The old one may not go before that is done.
    let error = admit(Some(&mut vault("b", &[("b", "2")])), &listed).unwrap_err();
    assert!(matches!(error, EncryptionError::Missing { .. }));
    listed.remove(0);
    assert_eq!(
        admit(Some(&mut vault("b", &[("b", "2")])), &listed),
        Ok(Admitted::default())
    );
}
