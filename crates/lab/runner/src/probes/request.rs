//! A request over HTTP that is sent again and again, and what its answer must be.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use lab_load::request::Assertion;
use net::Answer;
use regex::bytes::Regex;

use super::value::pattern_of;

/// Statuses that are well when the file does not say.
const BELOW_400: (u16, u16) = (0, 399);

/// A request over HTTP, and what its answer must be.
pub(super) struct HttpProbe {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
    statuses: Vec<(u16, u16)>,
    expected: Vec<Expected>,
}

/// Something that an answer must be besides its status.
enum Expected {
    Header(String, String),
    Contains(String),
    Is(String),
    Matches(Regex),
    Size(u64, u64),
}

impl HttpProbe {
    /// A request with its names filled in.
    ///
    /// # Errors
    /// When what was filled in makes no request.
    pub(super) fn new(
        (method, url): (&str, &str),
        headers: Vec<(String, String)>,
        body: String,
        asserts: &[Assertion],
    ) -> Result<Self, String> {
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            let field = HeaderName::try_from(&name).ok();
            let (field, value) = field
                .zip(HeaderValue::try_from(&value).ok())
                .ok_or_else(|| format!("the header {name}: {value:?} cannot be sent"))?;
            fields.append(field, value);
        }
        let (mut statuses, mut expected) = (Vec::new(), Vec::new());
        for assert in asserts {
            match assert {
                Assertion::Status(ranges) => statuses.extend_from_slice(ranges),
                Assertion::Header(name, text) => {
                    expected.push(Expected::Header(name.clone(), text.clone()));
                }
                Assertion::BodyContains(text) => expected.push(Expected::Contains(text.clone())),
                Assertion::BodyMatches(pattern) => {
                    expected.push(Expected::Matches(pattern_of(pattern)?));
                }
                Assertion::BodyIs(text) => expected.push(Expected::Is(text.clone())),
                Assertion::Size(low, high) => expected.push(Expected::Size(*low, *high)),
                Assertion::Rows(..) => {
                    return Err("rows are of databases; this is HTTP".to_owned());
                }
            }
        }
        if statuses.is_empty() {
            statuses.push(BELOW_400);
        }
        Ok(Self {
            method: Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?,
            uri: uri(url)?,
            headers: fields,
            body: body.into(),
            statuses,
            expected,
        })
    }

    /// The request, to be sent once.
    pub(super) fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Whether the answer is as it must be.
    pub(super) fn check(&self, answer: &Answer) -> Result<(), String> {
        let status = answer.status.as_u16();
        let is_in = |(low, high): &(u16, u16)| (*low..=*high).contains(&status);
        if !self.statuses.iter().any(is_in) {
            return Err(format!("status {status}"));
        }
        let body = &answer.body;
        for expected in &self.expected {
            let wrong = match expected {
                Expected::Header(name, text) => {
                    let fields = answer.headers.get_all(name).iter();
                    let mut texts = fields.map(|field| String::from_utf8_lossy(field.as_bytes()));
                    (!texts.any(|field| field.contains(text)))
                        .then(|| format!("no header {name} with {text:?}"))
                }
                Expected::Contains(text) => {
                    let has = text.is_empty()
                        || body.windows(text.len()).any(|part| part == text.as_bytes());
                    (!has).then(|| format!("the body does not contain {text:?}"))
                }
                Expected::Is(text) => {
                    (body[..] != *text.as_bytes()).then(|| format!("the body is not {text:?}"))
                }
                Expected::Matches(pattern) => {
                    (!pattern.is_match(body)).then(|| format!("the body does not match {pattern}"))
                }
                Expected::Size(low, high) => (!(*low..=*high).contains(&(body.len() as u64)))
                    .then(|| format!("a body of {} bytes", body.len())),
            };
            wrong.map_or(Ok(()), Err)?;
        }
        Ok(())
    }
}

/// The address of a request.
pub(super) fn uri(text: &str) -> Result<Uri, String> {
    let uri: Result<Uri, _> = text.parse();
    uri.map_err(|error| format!("{text:?} is no address: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status: http::StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::from_iter([(http::header::SERVER, "x/1".parse().unwrap())]),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn wrong(asserts: &[&str], answer: &Answer) -> Option<String> {
        let asserts: Vec<Assertion> = asserts
            .iter()
            .map(|a| Assertion::parse(a).unwrap())
            .collect();
        let asked = HttpProbe::new(
            ("GET", "http://127.0.0.1:1/"),
            Vec::new(),
            String::new(),
            &asserts,
        );
        asked.unwrap().check(answer).err()
    }

    #[test]
    fn an_answer_is_held_against_every_assertion() {
        assert_eq!(wrong(&[], &answer(399, "")), None);
        assert_eq!(wrong(&[], &answer(400, "")).as_deref(), Some("status 400"));
        assert_eq!(wrong(&["status 503"], &answer(503, "")), None);
        let good = [
            "status 2xx",
            "body contains up",
            "body matches ^up$",
            "header server contains x/",
            "size 2",
        ];
        assert_eq!(wrong(&good, &answer(200, "up")), None);
        for bad in [
            "body contains down",
            "body matches ^down",
            "header server contains y",
            "size 3..9",
            "header x contains y",
        ] {
            assert!(wrong(&[bad], &answer(200, "up")).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_before_the_run() {
        let new = |url: &str, header: &str| {
            let headers = vec![("x".to_owned(), header.to_owned())];
            HttpProbe::new(("GET", url), headers, String::new(), &[]).err()
        };
        assert_eq!(new("http://127.0.0.1:1/", "y"), None);
        assert!(
            new("http://127.0.0.1:1/a b", "y")
                .unwrap()
                .contains("is no address")
        );
        assert!(
            new("http://127.0.0.1:1/", "a\nb")
                .unwrap()
                .contains("cannot be sent")
        );
    }
}
