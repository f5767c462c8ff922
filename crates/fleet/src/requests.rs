//! Orders as requests.

use http::{Method, StatusCode};

use crate::agent::Silence;
use crate::order::Order;

/// Where orders are given: this and the number of the order.
pub const PATH: &str = "/silent/";
/// Bytes of the longest order that is read: a range for every second one of 3,000,000 agents.
pub const LONGEST_BODY: usize = 32 << 20;

impl Silence {
    /// What is answered to a request below [`PATH`]: a status, and a line of text.
    pub fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, String) {
        let number = path.strip_prefix(PATH);
        let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) else {
            let text = format!("expected {PATH}NUMBER, the number of an order\n");
            return (StatusCode::NOT_FOUND, text);
        };
        match *method {
            Method::PUT => match self.take(number, body) {
                Ok(named) => (StatusCode::OK, format!("{named} agents\n")),
                Err(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")),
            },
            Method::DELETE => match self.lift(number) {
                true => (StatusCode::OK, "lifted\n".to_owned()),
                false => (StatusCode::NOT_FOUND, format!("no order {number} stands\n")),
            },
            _ => {
                let text = "expected PUT or DELETE\n".to_owned();
                (StatusCode::METHOD_NOT_ALLOWED, text)
            }
        }
    }

    fn take(&self, number: u64, body: &[u8]) -> Result<u64, String> {
        let order: Order = serde_json::from_slice(body).map_err(|error| {
            format!("read the order: {error}; expected {{\"agents\":[[0,9]],\"back\":\"at once\"}}")
        })?;
        self.apply(number, order).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_given_and_lifted_by_requests() {
        let silence = Silence::of(100);
        let ask = |method, path: &str, body: &str| {
            let (status, text) = silence.answer(&method, path, body.as_bytes());
            (status.as_u16(), text)
        };
        let (status, text) = ask(Method::PUT, "/silent/7", r#"{"agents":[[0,9],[42,42]]}"#);
        assert_eq!((status, text.as_str()), (200, "11 agents\n"));
        assert_eq!(silence.silent(), 11);
        for (body, why) in [
            ("", "EOF"),
            (r#"{"agents":[[0,100]]}"#, "no agent 100"),
            (r#"{"agents":[[0,9]],"back":"later"}"#, "later"),
            (r#"{"agents":[[0,9]],"for":1}"#, "for"),
        ] {
            let (status, text) = ask(Method::PUT, "/silent/8", body);
            assert!(status == 400 && text.contains(why), "{status} {text}");
        }
        assert_eq!(ask(Method::GET, "/silent/7", "").0, 405);
        assert_eq!(ask(Method::PUT, "/silent/", "").0, 404);
        assert_eq!(ask(Method::DELETE, "/silent/8", "").0, 404);
        assert_eq!(silence.silent(), 11);
        assert_eq!(ask(Method::DELETE, "/silent/7", "").0, 200);
        assert_eq!(silence.silent(), 0);
    }
}
