//! Settings that several tables have.

use document::{Kind, Node, Problem, Value};

use super::amounts::{self, SIZE};
use super::{
    COLD_CONNECTIONS, Connections, MOST_CONNECTIONS, MOST_QUEUE, MOST_WORKERS, Protocol, Response,
    value,
};

pub(super) fn seed(node: &Node) -> Result<u64, Problem> {
    let seed = match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        // Numbers of TOML end at 2^63.
        Value::Text(text) => units::parse_count(text).ok(),
        _ => None,
    };
    seed.ok_or_else(|| value::expected("a whole number, 0 or more", node))
}

pub(super) fn protocol(node: &Node) -> Result<Protocol, Problem> {
    let name = value::text(node)?;
    let found = Protocol::ALL.into_iter().find(|one| one.name() == name);
    found.ok_or_else(|| {
        value::expected("one of http1, http2, grpc", node)
            .suggest_near(name, Protocol::ALL.map(Protocol::name))
    })
}

/// `64`: kept; `"cold"`, `"cold 16"`: a new one for each call.
pub(super) fn connections(node: &Node) -> Result<Connections, Problem> {
    let most = MOST_CONNECTIONS;
    if let Value::Text(text) = &node.value {
        let number = match text.strip_prefix("cold") {
            Some("") => Some(COLD_CONNECTIONS),
            Some(number) => number.strip_prefix(' ').and_then(|text| text.parse().ok()),
            None => None,
        };
        if let Some(number) = number.filter(|number| (1..=most).contains(number)) {
            return Ok(Connections::Cold(number));
        }
    }
    let what = format!(
        "how many connections are kept, from 1 to {most}, or \"cold\" for a new one each call"
    );
    match value::whole(node, 1..=most) {
        Ok(number) => Ok(Connections::Warm(number)),
        Err(_) => Err(value::expected(&what, node)),
    }
}

pub(super) fn response(node: &Node) -> Result<Response, Problem> {
    match &node.value {
        Value::Text(text) if text == "echo" => Ok(Response::Echo),
        _ => amounts::read(node, SIZE).map(Response::Bytes),
    }
}

pub(super) fn workers(node: &Node) -> Result<u32, Problem> {
    value::whole(node, 0..=MOST_WORKERS)
}

pub(super) fn queue(node: &Node) -> Result<u32, Problem> {
    value::whole(node, 0..=MOST_QUEUE)
}

pub(super) fn labels(node: &Node) -> Result<Vec<(String, String)>, Problem> {
    Kind::read(&node.value)
        .ok_or_else(|| value::expected("labels such as { tier = \"front\" }", node))
}

/// Which contexts are sent: W3C's, B3.
pub(super) fn propagation(node: &Node) -> Result<(bool, bool), Problem> {
    let (mut w3c, mut b3) = (false, false);
    for node in value::list(node, "a list")? {
        match &node.value {
            Value::Text(text) if text == "w3c" => w3c = true,
            Value::Text(text) if text == "b3" => b3 = true,
            _ => return Err(value::expected("\"w3c\" or \"b3\"", node)),
        }
    }
    Ok((w3c, b3))
}

/// Where spans go.
pub(super) fn collector(node: &Node) -> Result<url::Url, Problem> {
    let url = url::Url::parse(value::text(node)?).ok();
    url.filter(|url| url.scheme() == "http" && url.host().is_some())
        .ok_or_else(|| {
            value::expected("a URL such as \"http://localhost:9411/api/v2/spans\"", node)
        })
}
