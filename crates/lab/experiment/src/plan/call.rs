//! Requests of a step, and values that steps keep.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use units::grouped;

use super::{Act, FaultKind, LoadTls, Make, Reference, Request, RequestBody, Step, Template};

/// The expression by which the whole of an output is kept, without white space at its ends.
pub const WHOLE_OUTPUT: &str = r"(?s)\A\s*(.*?)\s*\z";

/// A request over HTTP that a step makes, once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// Scheme, host and port, `http://{web.addr}`; a kept value behind them begins the path.
    pub target: Template,
    /// What is asked, its path as far as it is no kept value behind the host, what the
    /// answer must be, and what is kept of it.
    pub request: Request,
    /// Longest time until the whole answer is there.
    pub within: Duration,
    /// Set if the target begins with `https`.
    pub tls: Option<LoadTls>,
}

impl Call {
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.request.headers.iter().map(|(_, value)| value);
        let body = match &self.request.body {
            RequestBody::Text(text) => Some(text),
            RequestBody::Empty | RequestBody::File(_) => None,
        };
        let fixed = [&self.target, &self.request.path];
        fixed.into_iter().chain(headers).chain(body)
    }
}

impl Step {
    /// Names under which it keeps values.
    pub fn keeps(&self) -> impl Iterator<Item = &str> {
        let answers = self.calls.iter().flat_map(|call| &call.request.take);
        answers.chain(&self.keep).map(|take| take.name.as_str())
    }

    /// Names of kept values that it fills in, its own among them.
    pub fn uses(&self) -> impl Iterator<Item = &str> {
        let acts = self.faults.iter().flat_map(|fault| match &fault.kind {
            FaultKind::Custom { does, undo, .. } => vec![does, undo],
            _ => Vec::new(),
        });
        let commands = acts.filter_map(|act| match act {
            Act::Command(command) => Some(command),
            Act::Request(_) => None,
        });
        let made = self.make.iter().flat_map(|make| make.later.values());
        let requests = self.requests().flat_map(Call::templates);
        let all = self.run.iter().chain(made).chain(commands).chain(requests);
        all.flat_map(Template::references)
            .filter_map(|reference| match reference {
                Reference::Kept(name) => Some(name.as_str()),
                _ => None,
            })
    }
}

/// What is asked to be made cannot be told, once values that steps keep are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`count` is \"{written}\", which came to no whole number from 0 to {}",
    grouped(Make::MOST)
)]
pub struct CountError {
    /// As the file has it.
    pub written: String,
}

impl Make {
    /// Most entities of one step.
    pub const MOST: u64 = 10_000_000;

    /// What is to be made, with kept values filled in by `resolve`.
    ///
    /// # Errors
    /// When `count` is then no count.
    pub fn filled_in(&self, resolve: impl Fn(&Reference) -> String) -> Result<Self, CountError> {
        let mut make = Self {
            later: BTreeMap::new(),
            ..self.clone()
        };
        for (key, template) in &self.later {
            let text = template.render(&resolve);
            if key == "count" {
                let count = units::parse_count(text.trim()).ok();
                let count = count.filter(|count| *count <= Self::MOST);
                make.count = count.ok_or_else(|| CountError {
                    written: template.to_string(),
                })?;
            } else {
                make.options.insert(key.clone(), text);
            }
        }
        Ok(make)
    }
}
