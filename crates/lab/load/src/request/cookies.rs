//! Cookies of one journey.

use super::answer::Answer;

/// Most cookies of a journey; further ones are ignored.
const MOST: usize = 50;
/// Longest name and value together; longer cookies are ignored.
const LONGEST: usize = 4_096;

/// The cookies that the answers of a journey have set.
///
/// All of them go with every later request of the journey: a journey talks to one host,
/// and what `Domain`, `Path`, `Secure` and the like would withhold is sent as well. A
/// cookie set again replaces the former; `Max-Age` of 0 and below, or `Expires` in
/// 1970, which is how servers write it, removes it. Other expiry is ignored: a journey
/// is short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cookies(Vec<(String, String)>);

impl Cookies {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps what an answer sets.
    pub(super) fn keep(&mut self, answer: &Answer<'_>) {
        for line in answer.values("set-cookie") {
            let mut parts = line.split(';');
            let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let text = |text: &str| text.bytes().all(|b| b > b' ' && b != 0x7f || b == b' ');
            if name.is_empty() || name.len() + value.len() > LONGEST || !text(name) || !text(value)
            {
                continue;
            }
            self.0.retain(|(known, _)| known != name);
            if !parts.any(removes) && self.0.len() < MOST {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Appends the value of a `Cookie` field.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (index, (name, value)) in self.0.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
        }
    }
}

/// Whether an attribute says that the cookie shall be removed.
fn removes(attribute: &str) -> bool {
    let Some((name, value)) = attribute.split_once('=') else {
        return false;
    };
    let (name, value) = (name.trim(), value.trim());
    (name.eq_ignore_ascii_case("max-age") && value.parse::<i64>().is_ok_and(|age| age <= 0))
        || (name.eq_ignore_ascii_case("expires") && value.contains("1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(lines: &str) -> String {
        let mut cookies = Cookies::default();
        cookies.keep(&Answer {
            status: 200,
            fields: lines.as_bytes(),
            body: b"",
            body_bytes: 0,
            rows: 0,
        });
        let mut out = Vec::new();
        cookies.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_kept_replaced_and_removed() {
        assert_eq!(
            sent("Set-Cookie: a=1; Path=/\r\nset-cookie: b=x=y\r\nServer: s\r\n"),
            "a=1; b=x=y"
        );
        assert_eq!(sent("Set-Cookie: a=1\r\nSet-Cookie: a=2\r\n"), "a=2");
        assert_eq!(sent("Set-Cookie: a=1\r\nSet-Cookie: a=; Max-Age=0\r\n"), "");
        let past = "Set-Cookie: a=1\r\nSet-Cookie: a=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        assert_eq!(sent(past), "");
        assert_eq!(sent("Set-Cookie: nonsense\r\nSet-Cookie: =1\r\n"), "");
    }

    #[test]
    fn their_number_and_size_are_bounded() {
        let lines: String = (0..60).map(|n| format!("Set-Cookie: c{n}=1\r\n")).collect();
        assert_eq!(sent(&lines).split("; ").count(), MOST);
        assert_eq!(
            sent(&format!("Set-Cookie: a={}\r\n", "x".repeat(5_000))),
            ""
        );
    }
}
