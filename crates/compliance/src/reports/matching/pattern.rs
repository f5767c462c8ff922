//! Values with variables that only the agent knows: `${name}` and `$(name)`.

/// The texts around a value's variables: one more than there are variables.
struct Literals<'a>(Option<&'a str>);

impl<'a> Iterator for Literals<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0?;
        for (at, _) in text.match_indices('$') {
            let Some((literal, variable)) = text.split_at_checked(at) else {
                continue;
            };
            let end = match variable.as_bytes().get(1) {
                Some(b'{') => '}',
                Some(b'(') => ')',
                _ => continue,
            };
            if let Some((_, rest)) = variable.split_once(end) {
                self.0 = Some(rest);
                return Some(literal);
            }
        }
        self.0 = None;
        Some(text)
    }
}

/// Has a value a variable?
pub(super) fn is_pattern(value: &str) -> bool {
    Literals(Some(value)).nth(1).is_some()
}

/// Bytes of a value that are no variables.
pub(super) fn literal_bytes(value: &str) -> usize {
    Literals(Some(value)).map(str::len).sum()
}

/// Can a key come of a value, whatever its variables are? They may be empty or of many lines.
pub(super) fn matches(value: &str, key: &str) -> bool {
    let mut literals = Literals(Some(value)).peekable();
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) = key.strip_prefix(first) else {
        return false;
    };
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        match rest.split_once(literal) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{is_pattern, literal_bytes, matches};

    #[test]
    fn variables_stand_for_any_text() {
        for (value, key, expected) in [
            ("/etc/${file}", "/etc/hosts", true),
            ("/etc/${file}", "/etc/", true),
            ("/etc/${file}", "/var/hosts", false),
            ("${a}/x/$(b)", "1/x/2\n3", true),
            ("${a}/x/$(b)", "1/y/2", false),
            ("a${b}a", "a", false),
            ("a${b}a", "aa", true),
            ("${a}${b}", "", true),
            ("${a}bc", "bcbc", true),
            ("x.*${a}", "xyz", false),
            ("x.*${a}", "x.*z", true),
        ] {
            assert!(is_pattern(value));
            assert_eq!(matches(value, key), expected, "{value} {key}");
        }
        for constant in ["", "a", "$", "${a", "$a}", "a$", "é$(é"] {
            assert!(!is_pattern(constant), "{constant}");
            assert!(matches(constant, constant) && !matches(constant, "b"));
        }
        assert_eq!(literal_bytes("/etc/${file}/$(x)a"), 7);
        assert_eq!(literal_bytes("/etc"), 4);
    }
}
