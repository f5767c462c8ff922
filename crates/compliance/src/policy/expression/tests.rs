use proptest::prelude::*;

use super::super::template::tests::expanded;
use super::*;
use crate::policy::template::Substitutions;

#[test]
fn expressions_have_their_values() {
    let cases = [
        ("1 + 2 * 3 - 8 / 4 % 3", "5"),
        ("-(2 - 5)", "3"),
        ("\"a\" + 1 + 'b'", "a1b"),
        ("1 < 2 && !(2 <= 1) || false", "true"),
        ("\"abc\" < \"abd\" ? 'yes' : 'no'", "yes"),
        ("1 == 1 ? (2 == 3 ? 'a' : 'b') : 'c'", "b"),
        ("[1, 2] + ['x']", "[1,2,\"x\"]"),
        ("['a', 'b'][1]", "b"),
        ("${rudder.node.hostname}", "n1.example.org"),
        ("${node.properties[port]} + 1", "8081"),
        (
            "${node.properties[datacenter]}['Europe']['racks'][0] == 1",
            "true",
        ),
        ("${node.properties[none] | default = \"x\"} + '!'", "x!"),
        ("split(${rudder.node.hostname}, '.')[0]", "n1"),
        ("upper('aé') + lower('ÀB') + trim('  x ')", "AÉàbx"),
        ("replace('a.b.c', '.', '::')", "a::b::c"),
        ("replace('abc', '', 'x')", "abc"),
        ("substring('hélène', 1, 3) + substring('abc', 2)", "élèc"),
        ("join(split('a,b', ','), ' and ')", "a and b"),
        ("contains('web01', 'web') && contains([1, 2], 2)", "true"),
        (
            "starts_with('web01', 'web') && ends_with('web01', '1')",
            "true",
        ),
        ("matches('web01', 'web[0-9]+')", "true"),
        ("matches('web01x', 'web[0-9]+')", "false"),
        ("pad_left('7', 3, '0') + text(12)", "00712"),
        ("integer(' 42 ') + length('héé') + length([1, 2])", "47"),
        ("min(3, 1, 2) + max(3, 1, 2)", "4"),
        ("\"a\\n\\\"b\\\"\"", "a\n\"b\""),
        // FIPS 180-2, appendix B.1.
        (
            "sha256('abc')",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        ("substring(sha512('abc'), 0, 16)", "ddaf35a193617aba"),
        (
            "spread('n1', 60) == spread('n1', 60) && spread('n1', 60) < 60",
            "true",
        ),
        ("false && 1 / 0 == 1", "false"),
    ];
    for (source, expected) in cases {
        assert_eq!(
            expanded(&format!("eval:{source}")).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn what_is_wrong_is_told() {
    let cases = [
        ("1 +", "byte 9: the expression ends"),
        ("(1", "expected )"),
        ("1 2", "expected an operator"),
        (
            "hostname",
            "\"hostname\" is no value; write texts in quotes",
        ),
        (
            "uper('a')",
            "there is no function \"uper\"; did you mean \"upper\"?",
        ),
        ("upper()", "upper takes (TEXT), not 0 arguments"),
        (
            "matches('a', 'b' + 'c')",
            "expected matches(TEXT, \"REGULAR EXPRESSION\")",
        ),
        ("matches('a', '(')", "regular expression"),
        ("'open", "the text has no end"),
        ("1 < 2 < 3", "expected an operator"),
        ("99999999999999999999", "below 2^63"),
        ("1 / 0", "divided by zero"),
        ("spread('a', 0)", "divided by zero"),
        ("9223372036854775807 + 1", "beyond 64 bits"),
        ("'a' - 1", "- needs a whole number, not a text"),
        ("!1", "! needs true or false, not a number"),
        ("[1][3]", "no entry 3"),
        ("${node.properties[none]}", "there is no property [none]"),
        ("${rudder.foo}", "after rudder."),
    ];
    for (source, message) in cases {
        let error = expanded(&format!("eval: {source}")).unwrap_err();
        assert!(error.contains(message), "{source}: {error}");
    }
}

#[test]
fn depth_steps_and_bytes_are_bounded() {
    let read = |source: &str| Expression::parse(source, &Substitutions::new());
    assert!(read(&"(".repeat(1_000)).is_err());
    assert!(read(&"!".repeat(1_000)).is_err());
    assert!(read(&("[".repeat(30) + &"]".repeat(30))).is_ok());
    assert!(read(&format!("'{}'", "x".repeat(SOURCE_BYTES))).is_err());
    let error = |source: &str| expanded(&format!("eval:{source}")).unwrap_err();
    let long = format!("length([{}])", "1,".repeat(4_000) + "1");
    assert!(expanded(&format!("eval:{long}")).is_ok());
    let steps = format!("length([{}])", "1,".repeat(6_000) + "1");
    assert!(error(&steps).contains("5000 steps"));
    assert!(read(&("1+".repeat(7_000) + "1")).is_err());
    assert!(read(&("[[1]]".to_owned() + &"[0]".repeat(5_000))).is_err());
    let double = "replace(".repeat(20) + "'x'" + &", 'x', 'xxxxxxxx')".repeat(20);
    assert!(error(&double).contains("1048576 bytes"));
    assert!(error("pad_left('', 9223372036854775807, 'x')").contains("1048576 bytes"));
    // Texts with variables count together, however many there are.
    let wide = "${node.properties[none] | default = \"x${node.properties[wide]}\"}";
    let texts = |count: usize| format!("length([{}])", [wide].repeat(count).join(", "));
    assert_eq!(
        expanded(&format!("eval:{}", texts(40))).as_deref(),
        Ok("40")
    );
    assert!(error(&texts(60)).contains("more than 100000 variables"));
}

proptest! {
    /// Any text is read or refused, and evaluates or tells why not.
    #[test]
    fn any_text_is_an_expression_or_refused(
        source in "([0-9a-z'\"+*/%<>=!&|?:()\\[\\], -]|upper\\(|split\\(|\\$\\{node\\.properties\\[port\\]\\}){0,40}"
    ) {
        let _ = expanded(&format!("eval:{source}"));
    }
}
