//! An immutable list of the endpoints of one route.

use std::slice;
use std::sync::Arc;

use stats::fnv1a;

use super::{Endpoint, maglev};

/// The endpoints of one route at one moment. Most routes have one.
#[derive(Debug, Default)]
pub(crate) enum Members {
    /// None.
    #[default]
    Empty,
    /// One.
    One(Arc<Endpoint>),
    /// More.
    Many(Box<Many>),
}

/// More than one endpoint, with what makes the right one quick to find.
#[derive(Debug)]
pub(crate) struct Many {
    endpoints: Box<[Arc<Endpoint>]>,
    /// Hashes of each endpoint's identity and instance, so that a search reads no endpoint
    /// but the right one.
    identities: Box<[u32]>,
    instances: Box<[u32]>,
    /// For routes that choose by hash.
    maglev: Option<Box<[u32]>>,
}

impl Members {
    /// A list of `endpoints`; `hashed` when one of them is chosen by hash.
    pub(super) fn new(mut endpoints: Vec<Arc<Endpoint>>, hashed: bool) -> Self {
        match endpoints.len() {
            0 => Self::Empty,
            1 => endpoints.pop().map_or(Self::Empty, Self::One),
            _ => Self::Many(Box::new(Many {
                identities: endpoints.iter().map(|it| mark(&it.identity)).collect(),
                instances: endpoints.iter().map(|it| mark(&it.instance_id)).collect(),
                maglev: hashed.then(|| maglev::slots(&endpoints)),
                endpoints: endpoints.into(),
            })),
        }
    }

    /// The endpoints, in the order in which they came.
    pub(crate) fn as_slice(&self) -> &[Arc<Endpoint>] {
        match self {
            Self::Empty => &[],
            Self::One(endpoint) => slice::from_ref(endpoint),
            Self::Many(many) => &many.endpoints,
        }
    }

    /// The [Maglev](maglev) table over the endpoints, if they are more than one and chosen
    /// by hash.
    pub(crate) fn maglev(&self) -> Option<&[u32]> {
        match self {
            Self::Many(many) => many.maglev.as_deref(),
            _ => None,
        }
    }

    /// Where the endpoint `identity` is.
    pub(super) fn position(&self, identity: &str) -> Option<usize> {
        match self {
            Self::Empty => None,
            Self::One(endpoint) => (endpoint.identity == identity).then_some(0),
            Self::Many(many) => search(&many.identities, mark(identity), |at| {
                many.endpoints[at].identity == identity
            }),
        }
    }

    /// The endpoint whose instance is `id`, or that is at the address `id`: gorouter keeps
    /// both in one index.
    pub(crate) fn instance(&self, id: &[u8]) -> Option<&Arc<Endpoint>> {
        let id = std::str::from_utf8(id).ok().filter(|id| !id.is_empty())?;
        let at = match self {
            Self::Empty => None,
            Self::One(endpoint) => (endpoint.instance_id == id).then_some(0),
            Self::Many(many) => search(&many.instances, mark(id), |at| {
                many.endpoints[at].instance_id == id
            }),
        };
        self.as_slice().get(at.or_else(|| self.position(id))?)
    }

    /// With one more endpoint.
    pub(super) fn with(&self, endpoint: Arc<Endpoint>, hashed: bool) -> Self {
        match self {
            // Nothing is computed again: thousands of endpoints may come one by one.
            Self::Many(many) if !hashed => Self::Many(Box::new(Many {
                identities: one_more(&many.identities, mark(&endpoint.identity)),
                instances: one_more(&many.instances, mark(&endpoint.instance_id)),
                maglev: None,
                endpoints: one_more(&many.endpoints, endpoint),
            })),
            _ => Self::new(one_more(self.as_slice(), endpoint).into_vec(), hashed),
        }
    }

    /// With another endpoint at `at`.
    pub(super) fn replaced(&self, at: usize, endpoint: Arc<Endpoint>, hashed: bool) -> Self {
        let mut endpoints = self.as_slice().to_vec();
        if let Some(known) = endpoints.get_mut(at) {
            *known = endpoint;
        }
        Self::new(endpoints, hashed)
    }

    /// Without the endpoint at `at`; the others stay in their order, as in gorouter.
    pub(super) fn without(&self, at: usize, hashed: bool) -> Self {
        let mut endpoints = self.as_slice().to_vec();
        if at < endpoints.len() {
            endpoints.remove(at);
        }
        Self::new(endpoints, hashed)
    }
}

fn one_more<T: Clone>(known: &[T], more: T) -> Box<[T]> {
    let mut all = Vec::with_capacity(known.len() + 1);
    all.extend_from_slice(known);
    all.push(more);
    all.into()
}

fn mark(text: &str) -> u32 {
    fnv1a(0, text.bytes()) as u32
}

fn search(marks: &[u32], mark: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + marks.get(from..)?.iter().position(|other| *other == mark)?;
        if is_it(at) {
            return Some(at);
        }
        from = at + 1;
    }
}
