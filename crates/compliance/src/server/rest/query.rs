//! What follows `?` in an address.

/// What follows `?`: keys and values.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').take(256);
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(key, value)| (unescaped(key), unescaped(value)))
                .collect(),
        )
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// A text of an address with its `%` and `+` undone; what is no UTF-8 is replaced.
pub(super) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = match (first, after) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                match (digit(high), digit(low)) {
                    (Some(high), Some(low)) => {
                        rest = after;
                        u8::try_from(high * 16 + low).unwrap_or(b'?')
                    }
                    _ => b'%',
                }
            }
            (byte, _) => *byte,
        };
        bytes.push(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
