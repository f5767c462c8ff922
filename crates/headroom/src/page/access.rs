//! Who may see the page of a run: whoever has its address, with the token in it, and asks
//! this machine for it by its own name.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Method, StatusCode, Uri};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageRequest {
    /// The page with the data of now.
    Page,
    /// Data that are newer than those that somebody has.
    Data { known: Option<Known> },
    /// Something is to be done to the run.
    Act(Act),
}

/// The data that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// The number of their snapshot.
    pub(super) snapshot: u64,
    /// The moment of their lifecycles; 0: they have none.
    pub(super) lifecycles: u32,
}

/// What can be done to a run from its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Note what the body says.
    Mark,
    Stop,
    /// Change the rate of the load that the body names.
    Rate,
}

/// Why somebody gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// A page from elsewhere whose name was made to mean this machine would ask like this.
    #[error("this page is served to 127.0.0.1 and localhost with its port alone")]
    Host,
    #[error("the token is missing or wrong: open the whole address that headroom printed")]
    Token,
    #[error(
        "this is the wrong method: pages are read with GET, and /mark, /stop and /rate are asked for with POST"
    )]
    Method,
    /// A form of a page from elsewhere can send no such body without being asked whether it may.
    #[error("expected a body of application/json")]
    Kind,
    #[error("there is nothing here; the page is at /")]
    Nothing,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Token => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Kind => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Nothing => StatusCode::NOT_FOUND,
        }
    }
}

/// Decides who may see what.
pub(super) struct Access {
    port: u16,
    token: String,
}

impl Access {
    /// For a server at this port, with a token that nobody can guess: 128 random bits.
    pub(super) fn new(port: u16) -> Self {
        Self {
            port,
            token: format!("{:032x}", rand::random::<u128>()),
        }
    }

    /// The address of the page.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// What a request may have. Nothing is told to those without the token, not even what
    /// there is.
    pub(super) fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<PageRequest, Refusal> {
        if !self.is_asked_by_own_name(uri, headers) {
            return Err(Refusal::Host);
        }
        let given = token(uri.query().unwrap_or_default());
        verify_slices_are_equal(given.as_bytes(), self.token.as_bytes())
            .map_err(|_| Refusal::Token)?;
        let (wanted, by) = match uri.path() {
            "/" => (PageRequest::Page, Method::GET),
            "/data" => {
                let known = known(headers);
                (PageRequest::Data { known }, Method::GET)
            }
            "/mark" => (PageRequest::Act(Act::Mark), Method::POST),
            "/stop" => (PageRequest::Act(Act::Stop), Method::POST),
            "/rate" => (PageRequest::Act(Act::Rate), Method::POST),
            _ => return Err(Refusal::Nothing),
        };
        if method != by {
            return Err(Refusal::Method);
        }
        if by == Method::POST && !headers.get(CONTENT_TYPE).is_some_and(is_json) {
            return Err(Refusal::Kind);
        }
        Ok(wanted)
    }

    fn is_asked_by_own_name(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let own = |name: &str| {
            let (host, port) = name.rsplit_once(':').unwrap_or_default();
            // The names of hosts have no case.
            let is_own = host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost");
            is_own && port == self.port.to_string()
        };
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        host.is_some_and(own)
            && hosts.next().is_none()
            && uri.authority().is_none_or(|name| own(name.as_str()))
    }
}

/// Whether a body is said to be JSON, whatever parameters follow: types have no case.
fn is_json(kind: &HeaderValue) -> bool {
    let kind = kind.as_bytes().split(|byte| *byte == b';').next();
    kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/json"))
}

/// The token of a query; empty when it has none.
fn token(query: &str) -> &str {
    let mut pairs = query.split('&');
    pairs
        .find_map(|pair| pair.strip_prefix("token="))
        .unwrap_or_default()
}

/// The data that somebody has, by the tag of the answer that they came with.
fn known(headers: &HeaderMap) -> Option<Known> {
    let tag = headers.get(IF_NONE_MATCH)?.to_str().ok()?;
    let (snapshot, lifecycles) = tag.trim_matches('"').split_once('.')?;
    Some(Known {
        snapshot: snapshot.parse().ok()?,
        lifecycles: lifecycles.parse().ok()?,
    })
}

impl Known {
    /// The tag of an answer with these data.
    pub(super) fn tag(self) -> String {
        let Self {
            snapshot,
            lifecycles,
        } = self;
        format!("\"{snapshot}.{lifecycles}\"")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWN: &str = "127.0.0.1:4711";

    fn access() -> Access {
        Access {
            port: 4711,
            token: "0123456789abcdef".to_owned(),
        }
    }

    fn ask(method: &Method, uri: &str, hosts: &[&str]) -> Result<PageRequest, Refusal> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        access().admit(method, &uri.parse().unwrap(), &headers)
    }

    fn get(uri: &str) -> Result<PageRequest, Refusal> {
        ask(&Method::GET, uri, &[OWN])
    }

    #[test]
    fn the_printed_address_opens_the_page_and_no_two_have_the_same_token() {
        let (one, other) = (Access::new(80), Access::new(80));
        assert_ne!(one.url(), other.url());
        let uri: Uri = one.url().parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:80".parse().unwrap());
        let admitted = one.admit(&Method::GET, &uri, &headers);
        assert_eq!(admitted, Ok(PageRequest::Page));
        let other = other.admit(&Method::GET, &uri, &headers);
        assert_eq!(other, Err(Refusal::Token));
    }

    #[test]
    fn only_the_whole_token_opens_and_it_is_asked_for_before_anything_is_told() {
        assert_eq!(get("/?token=0123456789abcdef"), Ok(PageRequest::Page));
        assert_eq!(get("/?a=b&token=0123456789abcdef"), Ok(PageRequest::Page));
        for uri in [
            "/",
            "/?token=",
            "/?token=0123456789abcde",
            "/?token=0123456789abcdef0",
            "/?Token=0123456789abcdef",
            "/data",
            "/nothing",
        ] {
            assert_eq!(get(uri), Err(Refusal::Token), "{uri}");
        }
        assert_eq!(ask(&Method::POST, "/", &[OWN]), Err(Refusal::Token));
        assert_eq!(get("/no?token=0123456789abcdef"), Err(Refusal::Nothing));
    }

    #[test]
    fn nobody_is_answered_who_asks_by_another_name() {
        let uri = "/?token=0123456789abcdef";
        let by = |hosts: &[&str]| ask(&Method::GET, uri, hosts);
        for host in ["localhost:4711", "LOCALHOST:4711", "Localhost:4711"] {
            assert_eq!(by(&[host]), Ok(PageRequest::Page), "{host}");
        }
        for hosts in [
            &[][..],
            &["127.0.0.1"],
            &["127.0.0.1:4712"],
            &["evil.example:4711"],
            &["127.0.0.1.evil.example:4711"],
            &["LOCALHOST"],
            &["localhost:4711:4711"],
            &["evil.localhost:4711"],
            &["evil.example", OWN],
            &[OWN, "evil.example"],
        ] {
            assert_eq!(by(hosts), Err(Refusal::Host), "{hosts:?}");
        }
        let absolute = "http://evil.example:4711/?token=0123456789abcdef";
        assert_eq!(ask(&Method::GET, absolute, &[OWN]), Err(Refusal::Host));
    }

    #[test]
    fn reading_is_by_get_and_acts_are_by_post_of_json_with_the_token() {
        let token = "?token=0123456789abcdef";
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            for path in ["/", "/data"] {
                let asked = ask(&method, &format!("{path}{token}"), &[OWN]);
                assert_eq!(asked, Err(Refusal::Method), "{method} {path}");
            }
        }
        let act = |method: &Method, uri: &str, kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, OWN.parse().unwrap());
            headers.insert(CONTENT_TYPE, kind.parse().unwrap());
            access().admit(method, &uri.parse().unwrap(), &headers)
        };
        const JSON: &str = "application/json";
        let acts = [
            ("/mark", Act::Mark),
            ("/stop", Act::Stop),
            ("/rate", Act::Rate),
        ];
        for (path, done) in acts {
            let uri = format!("{path}{token}");
            for kind in [
                JSON,
                "application/json; charset=utf-8",
                "Application/JSON ;a=b",
            ] {
                assert_eq!(
                    act(&Method::POST, &uri, kind),
                    Ok(PageRequest::Act(done)),
                    "{kind}"
                );
            }
            assert_eq!(act(&Method::GET, &uri, JSON), Err(Refusal::Method));
            let forms = [
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
                "text/plain; application/json",
                "application/jsonx",
                "",
            ];
            for kind in forms {
                assert_eq!(act(&Method::POST, &uri, kind), Err(Refusal::Kind), "{kind}");
            }
            assert_eq!(act(&Method::POST, path, JSON), Err(Refusal::Token));
        }
    }

    #[test]
    fn a_wrong_method_is_told_what_is_done_by_which() {
        let told = Refusal::Method.to_string();
        for act in ["/mark", "/stop", "/rate", "POST", "GET"] {
            assert!(told.contains(act), "{told}");
        }
    }

    #[test]
    fn what_somebody_has_is_told_by_its_tag() {
        let with = |tag: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, OWN.parse().unwrap());
            headers.insert(IF_NONE_MATCH, tag.parse().unwrap());
            let uri = "/data?token=0123456789abcdef".parse().unwrap();
            access().admit(&Method::GET, &uri, &headers)
        };
        let known = Known {
            snapshot: 17,
            lifecycles: 4,
        };
        assert_eq!(
            with(&known.tag()),
            Ok(PageRequest::Data { known: Some(known) })
        );
        for unknown in ["*", "\"17\"", "\"17.\"", "\"17.-1\"", "\"17.4294967296\""] {
            assert_eq!(
                with(unknown),
                Ok(PageRequest::Data { known: None }),
                "{unknown}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_other_token_opens(token in "[0-9a-f]{0,40}") {
            prop_assume!(token != "0123456789abcdef");
            prop_assert_eq!(get(&format!("/?token={token}")), Err(Refusal::Token));
        }
    }
}
