//! Requests that name their instance.

use crate::table::{Endpoint, Pool};

/// The instances that a request names; none other may serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance<'a> {
    /// `X-CF-App-Instance: <app>:<index>`.
    App {
        /// Guid of the application.
        app: &'a [u8],
        /// Index of the instance, in digits.
        index: &'a [u8],
    },
    /// `X-CF-Process-Instance: <process>[:<index>]`.
    Process {
        /// Guid of the process, which endpoints have in their tag `process_id`.
        process: &'a [u8],
        /// Index of the instance, in digits; `None`: any.
        index: Option<&'a [u8]>,
    },
}

impl Instance<'_> {
    /// Whether `endpoint` is one of them.
    pub fn is(&self, endpoint: &Endpoint) -> bool {
        let is_at = |index: &[u8]| endpoint.instance_index.as_bytes() == index;
        match *self {
            Self::App { app, index } => endpoint.app.as_bytes() == app && is_at(index),
            Self::Process { process, index } => {
                process_of(endpoint).is_some_and(|it| it.as_bytes() == process)
                    && index.is_none_or(is_at)
            }
        }
    }

    /// Whether `pool` has one of them. If not, the request is refused.
    pub fn exists_in(&self, pool: &Pool) -> bool {
        pool.endpoints().iter().any(|endpoint| self.is(endpoint))
    }
}

fn process_of(endpoint: &Endpoint) -> Option<&str> {
    let tags = endpoint.tags.as_deref()?;
    let tag = tags.iter().find(|(name, _)| name == "process_id")?;
    Some(tag.1.as_str())
}
