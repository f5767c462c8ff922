//! The choices of one request.

use std::sync::Arc;

use stats::{SplitMix, fnv1a};

use super::{SelectionRequest, SelectionSettings, is_full};
use crate::table::{Algorithm, Endpoint, MAGLEV_SLOTS, Nanos, Pool};

/// The next endpoint to try.
#[derive(Debug, Clone)]
pub enum Next {
    /// This one.
    Endpoint(Arc<Endpoint>),
    /// All that would do have as many requests in flight as they may have.
    Overloaded,
    /// There is none, or not the one that the client is bound to, be it gone or full.
    None,
}

/// Chooses an endpoint for each attempt of one request.
#[derive(Debug)]
pub struct Choice {
    pool: Arc<Pool>,
    /// The only endpoints that will do, if the request named them.
    only: Option<Box<[Arc<Endpoint>]>>,
    sticky: Affinity,
    how: How,
    /// Attempts so far.
    attempts: u32,
    /// What the attempt before tried.
    last: Option<Tried>,
    random: SplitMix,
}

/// The instance that a client is bound to.
#[derive(Debug)]
enum Affinity {
    /// None, or it is gone and another will do.
    Free,
    /// The first attempt goes there.
    First(Arc<Endpoint>),
    /// Every attempt goes there.
    Always(Option<Arc<Endpoint>>),
}

/// An endpoint that was tried, by the address of its state, which an update does not
/// change. It is compared and nothing else: should the endpoint be gone and another one in
/// its place, that one is passed over once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tried(usize);

impl Tried {
    fn new(endpoint: &Endpoint) -> Self {
        Self(Arc::as_ptr(&endpoint.state).addr())
    }
}

/// How to choose, and where the attempt before left off.
#[derive(Debug, Clone, Copy)]
enum How {
    /// The position to try next; `None`: where the pool is.
    RoundRobin(Option<usize>),
    LeastConnection,
    /// The slot to try next.
    Hash(usize),
}

impl Choice {
    /// The choices of a request to `pool` for the given request. `random` decides between
    /// endpoints that are equally good.
    pub fn new(
        pool: Arc<Pool>,
        settings: &SelectionSettings,
        selection_request: &SelectionRequest<'_>,
        random: u64,
    ) -> Self {
        let endpoints = pool.endpoints();
        let only = selection_request.instance.map(|instance| {
            let asked_for = endpoints.iter().filter(|it| instance.is(it));
            asked_for.cloned().collect::<Box<[_]>>()
        });
        let sticky = selection_request.sticky.map_or(Affinity::Free, |sticky| {
            let found = endpoints.members().instance(sticky.id);
            let found = found.filter(|it| {
                selection_request
                    .instance
                    .is_none_or(|instance| instance.is(it))
            });
            match (found, sticky.must) {
                (found, true) => Affinity::Always(found.cloned()),
                (Some(found), false) => Affinity::First(Arc::clone(found)),
                (None, false) => Affinity::Free,
            }
        });
        let how = match (pool.settings().algorithm, selection_request.hash) {
            (Some(Algorithm::Hash), Some(value)) => {
                How::Hash((fnv1a(0, value.iter().copied()) % MAGLEV_SLOTS as u64) as usize)
            }
            (Some(Algorithm::Hash), None) | (None, _) => How::unhashed(settings.algorithm),
            (Some(algorithm), _) => How::unhashed(algorithm),
        };
        drop(endpoints);
        Self {
            pool,
            only,
            sticky,
            how,
            attempts: 0,
            last: None,
            // The generator stands still at 0.
            random: SplitMix::new(random),
        }
    }

    /// The pool that is chosen from.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The endpoint for the next attempt. It sees endpoints that came or left, and marks
    /// of failure that were set, since the attempt before.
    pub fn next(&mut self, settings: &SelectionSettings, now: Nanos) -> Next {
        match &self.sticky {
            Affinity::Always(None) => return Next::None,
            Affinity::Always(Some(it)) if is_full(it, settings.in_flight) => return Next::None,
            Affinity::Always(Some(it)) => return Next::Endpoint(Arc::clone(it)),
            Affinity::First(it) => {
                let it = Arc::clone(it);
                self.sticky = Affinity::Free;
                if !is_full(&it, settings.in_flight) {
                    return self.tried(it);
                }
            }
            Affinity::Free => {}
        }
        let only = self.only.take();
        let live = self.pool.endpoints();
        let endpoints = only.as_deref().unwrap_or(&live);
        let maglev = if only.is_none() {
            live.members().maglev()
        } else {
            None
        };
        let limit = settings.in_flight;
        let chosen = match endpoints {
            [] => None,
            [one] => (!is_full(one, limit)).then_some(one),
            _ => match self.how {
                How::RoundRobin(position) => self.round_robin(endpoints, position, settings, now),
                How::LeastConnection => self.least_connection(endpoints, settings),
                How::Hash(slot) => self.by_hash(endpoints, maglev, slot, settings, now),
            },
        };
        let next = match chosen {
            Some(it) => self.tried(Arc::clone(it)),
            None if endpoints.is_empty() => Next::None,
            None => Next::Overloaded,
        };
        self.only = only;
        next
    }

    fn tried(&mut self, endpoint: Arc<Endpoint>) -> Next {
        self.attempts = self.attempts.saturating_add(1);
        self.last = Some(Tried::new(&endpoint));
        Next::Endpoint(endpoint)
    }

    /// Whether this attempt looks in the own zone first.
    fn stays_local(&self, settings: &SelectionSettings) -> bool {
        settings.prefer_zone && self.attempts == 0
    }

    /// The next one in the order of the pool that is neither full nor marked as failed. If
    /// all that are not full failed, their marks are taken away.
    fn round_robin<'e>(
        &mut self,
        endpoints: &'e [Arc<Endpoint>],
        position: Option<usize>,
        settings: &SelectionSettings,
        now: Nanos,
    ) -> Option<&'e Arc<Endpoint>> {
        let count = endpoints.len();
        let first = position.unwrap_or_else(|| self.pool.advance(1) as usize) % count;
        let usable = |it: &Endpoint| !is_full(it, settings.in_flight) && !it.state.has_failed(now);
        let walk = |fits: &dyn Fn(&Endpoint) -> bool| {
            (0..count).find(|step| fits(&endpoints[(first + step) % count]))
        };
        let local = |it: &Endpoint| usable(it) && *it.zone == *settings.zone;
        let near = self.stays_local(settings).then(|| walk(&local)).flatten();
        let step = near.or_else(|| walk(&usable)).or_else(|| {
            let step = walk(&|it| !is_full(it, settings.in_flight))?;
            endpoints.iter().for_each(|it| it.state.forgive());
            Some(step)
        })?;
        if position.is_none() && step > 0 {
            // Who comes next goes on behind this one: else the one behind a failed one
            // would serve for both.
            self.pool.advance(step as u32);
        }
        self.how = How::RoundRobin(Some(first + step + 1));
        Some(&endpoints[(first + step) % count])
    }

    /// The one with the fewest requests in flight; of several, any. It does not look at
    /// marks of failure, but does not try the same one twice in a row: one that refuses
    /// connections has the fewest.
    fn least_connection<'e>(
        &mut self,
        endpoints: &'e [Arc<Endpoint>],
        settings: &SelectionSettings,
    ) -> Option<&'e Arc<Endpoint>> {
        let last = self.last;
        let is_last = |it: &Endpoint| last == Some(Tried::new(it));
        let fits = |it: &&Arc<Endpoint>| !is_full(it, settings.in_flight);
        let mut least = |local: bool| {
            let candidates = endpoints.iter().filter(fits);
            let candidates =
                candidates.filter(|it| !is_last(it) && (!local || *it.zone == *settings.zone));
            self.least_of(candidates)
        };
        let near = if settings.prefer_zone && last.is_none() {
            least(true)
        } else {
            None
        };
        near.or_else(|| least(false))
            .or_else(|| endpoints.iter().find(fits))
    }

    fn least_of<'e>(
        &mut self,
        candidates: impl Iterator<Item = &'e Arc<Endpoint>>,
    ) -> Option<&'e Arc<Endpoint>> {
        let mut least: Option<(&Arc<Endpoint>, u32)> = None;
        let mut equals = 0_u64;
        for candidate in candidates {
            let in_flight = candidate.state.in_flight();
            match least {
                Some((_, fewest)) if in_flight > fewest => continue,
                Some((_, fewest)) if in_flight == fewest => equals += 1,
                _ => equals = 1,
            }
            // The n-th of equals takes the place with a probability of 1/n.
            if equals == 1 || self.random.bits().is_multiple_of(equals) {
                least = Some((candidate, in_flight));
            }
        }
        least.map(|(endpoint, _)| endpoint)
    }

    /// The one whose slot it is, and behind it in the table the first other one that will
    /// do. One that is far above the average will not do, if the pool says how far.
    fn by_hash<'e>(
        &mut self,
        endpoints: &'e [Arc<Endpoint>],
        maglev: Option<&[u32]>,
        slot: usize,
        settings: &SelectionSettings,
        now: Nanos,
    ) -> Option<&'e Arc<Endpoint>> {
        let total: f64 = endpoints
            .iter()
            .map(|it| f64::from(it.state.in_flight()))
            .sum();
        let most = self.pool.settings().hash_balance * total / endpoints.len() as f64;
        let is_loaded = |it: &Endpoint| most > 0.0 && f64::from(it.state.in_flight()) > most;
        let at = |step: usize| match maglev {
            Some(slots) => slots[(slot + step) % slots.len()] as usize % endpoints.len(),
            // Only some instances will do: there is no table over them.
            None => (slot + step) % endpoints.len(),
        };
        let steps = maglev.map_or(endpoints.len(), <[u32]>::len);
        let walk = |fits: &dyn Fn(&Arc<Endpoint>) -> bool| {
            let mut seen = usize::MAX;
            (0..steps).find(|step| {
                let at = at(*step);
                let new = at != seen;
                seen = at;
                new && fits(&endpoints[at])
            })
        };
        let other = |it: &Endpoint| self.last != Some(Tried::new(it));
        let free = |it: &Arc<Endpoint>| !is_full(it, settings.in_flight);
        let step = walk(&|it| other(it) && free(it) && !it.state.has_failed(now) && !is_loaded(it))
            .or_else(|| walk(&|it| other(it) && free(it) && !it.state.has_failed(now)))
            .or_else(|| walk(&|it| other(it) && free(it)))
            .or_else(|| walk(&free))?;
        self.how = How::Hash(slot + step);
        Some(&endpoints[at(step)])
    }
}

impl How {
    fn unhashed(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::LeastConnection => Self::LeastConnection,
            Algorithm::RoundRobin | Algorithm::Hash => Self::RoundRobin(None),
        }
    }
}
