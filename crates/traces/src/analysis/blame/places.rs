//! Where the spans of a run spent their time, place by place, whatever request they are of.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::cause::Cause;
use super::super::forest::{Tree, by_trace, traces};
use super::super::path::{Sink, TOLERANCE, Unawaited, Walk};
use super::links::{Links, call};
use super::shapes::{Shape, Shapes};
use crate::{Name, Nanos, Span, SpanId, SpanKind};

/// Fewest requests without a missing span that stand for all.
const WHOLE: usize = 40;

/// Where time passes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In a service, in spans of one name, without what is below those.
    Within(Endpoint),
    /// On calls from one service to an endpoint of another, without the callee's time.
    Between(Name, Endpoint),
}

impl Place {
    /// Who is behind it: of both ends of a call the callee is the likelier one.
    pub(super) fn service(&self) -> &Name {
        match self {
            Self::Within(at) | Self::Between(_, at) => &at.service,
        }
    }
}

/// Spans of one name in one service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) service: Name,
    pub(super) name: Name,
}

/// Where a visit came from: what it does, and how long it takes, may well depend on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VisitOrigin {
    /// Where its request entered.
    pub(super) entry: Endpoint,
    /// As of [`Request`].
    handed_to: Option<Endpoint>,
    /// Whose visit of another service it is below of; `None`: the request entered here.
    caller: Option<Endpoint>,
}

/// One request at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestAtPlace {
    /// Its place in [`Visits::requests`].
    pub(super) request: usize,
    /// When the request began.
    begin: Nanos,
    /// Its visits there.
    pub(super) visits: u64,
    /// All of its time there, in nanoseconds.
    pub(super) spent: f64,
    /// Likewise, with stretches of the same service below: more spans do not shorten it.
    pub(super) inclusive: f64,
    /// What is on its critical path.
    pub(super) waited: f64,
    /// How long the request took.
    pub(super) latency: f64,
}

/// A request as its client saw it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) entry: Endpoint,
    /// The one endpoint of another service that the entry's visited; `None`: several, or none.
    handed_to: Option<Endpoint>,
    pub(super) begin: Nanos,
    pub(super) latency: f64,
}

/// Which requests are alike: those of one entry and, behind a gateway that names all alike, those
/// that it handed on to one endpoint.
pub(super) type Kind<'v> = (&'v Endpoint, Option<&'v Endpoint>);

/// Of how many visits how many did something, by their origin.
pub(super) type Counts = BTreeMap<VisitOrigin, (u64, u64)>;

/// Entries that hand requests on to one of several endpoints each, with those that both sides have.
pub(super) struct Gateways<'v>(BTreeMap<&'v Endpoint, BTreeSet<&'v Endpoint>>);

impl<'v> Gateways<'v> {
    pub(super) fn of(a: &'v Visits, b: &'v Visits) -> Self {
        let (mut known, there) = (a.handed(), b.handed());
        for (entry, callees) in &mut known {
            let also = there.get(*entry);
            callees.retain(|callee| also.is_some_and(|also| also.contains(*callee)));
        }
        // Several that have one name are copies of a service, and no other requests.
        known.retain(|_, callees| {
            let first = callees.first().map(|one| &one.name);
            callees.iter().any(|one| Some(&one.name) != first)
        });
        Self(known)
    }

    /// To whom a request was handed on, if that tells it apart from others of its entry.
    fn distinguishing_callee<'r>(
        &self,
        entry: &Endpoint,
        callee: Option<&'r Endpoint>,
    ) -> Option<&'r Endpoint> {
        let callees = self.0.get(entry)?;
        callee.filter(|callee| callees.contains(*callee))
    }

    /// Counts of visits of requests that are alike, together.
    pub(super) fn together(&self, counts: &Counts) -> Counts {
        let mut all = Counts::new();
        for (origin, (some, visits)) in counts {
            let handed_to = self.distinguishing_callee(&origin.entry, origin.handed_to.as_ref());
            let alike = VisitOrigin {
                handed_to: handed_to.cloned(),
                ..origin.clone()
            };
            let sum = all.entry(alike).or_default();
            (sum.0, sum.1) = (sum.0 + some, sum.1 + visits);
        }
        all
    }
}

/// What happened at a place.
#[derive(Debug, Clone, Default)]
pub(super) struct PlaceActivity {
    /// One for each request, in the order of their beginnings.
    pub(super) passages: Vec<RequestAtPlace>,
    /// Of each kind of visits, those that failed for a reason of their own (nothing below them
    /// did), and all.
    pub(super) counts: Counts,
    /// Calls that failed although who was called went well, and took longer: they were given up.
    pub(super) given_up: u64,
}

/// What requests did.
#[derive(Debug, Clone, Default)]
pub(super) struct Visits {
    pub(super) requests: Vec<Request>,
    pub(super) stays: BTreeMap<Place, PlaceActivity>,
    pub(super) shapes: BTreeMap<Endpoint, Shapes>,
    /// Visits of each endpoint.
    pub(super) visited: BTreeMap<Endpoint, u64>,
    /// How long its visits took with all that is below them, in nanoseconds, and how many those are.
    pub(super) lengths: BTreeMap<Endpoint, (f64, u64)>,
    /// Of the visits of each endpoint, how many were below those of which other one.
    pub(super) callers: BTreeMap<Endpoint, BTreeMap<Endpoint, u64>>,
}

/// A run, by place and by shape.
#[derive(Debug, Clone, Default)]
pub(in crate::analysis) struct Places {
    /// Requests of which no span is known to be missing.
    whole: Visits,
    /// The others.
    torn: Visits,
    pub(super) links: Links,
    /// Traces whose beginning is missing.
    pub(in crate::analysis) rootless: u64,
}

impl Places {
    /// Takes in the spans of any number of requests, in any order.
    pub(in crate::analysis) fn of(spans: &[Span]) -> Self {
        let mut places = Self::default();
        let order = by_trace(spans);
        let (mut tree, mut walk) = (Tree::default(), Walk::default());
        for trace in traces(&order) {
            let root = tree.build(trace, None);
            places.links.learn(&tree, root);
        }
        let mut counted = places.links.clone();
        for trace in traces(&order) {
            let root = tree.build(trace, None);
            counted.count(&tree, root);
            match root.filter(|root| !places.links.lacks_root(tree.node(*root).span)) {
                None => places.rootless += 1,
                Some(root) => {
                    let visits = match places.links.is_torn(&tree, root) {
                        true => &mut places.torn,
                        false => &mut places.whole,
                    };
                    visits.add(&tree, root, &mut walk, &places.links);
                }
            }
        }
        places.links = counted;
        places.whole.sort();
        places
    }

    /// Takes in another run of the same side, which came later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.whole.extend(&later.whole);
        self.torn.extend(&later.torn);
        self.links.extend(&later.links);
        self.rootless += later.rootless;
    }

    /// Requests that have a beginning.
    pub(super) fn requests(&self) -> usize {
        self.whole.requests.len() + self.torn.requests.len()
    }

    /// Requests of which spans are missing.
    pub(in crate::analysis) fn torn(&self) -> u64 {
        self.torn.requests.len() as u64 + self.rootless
    }

    /// Whether there are enough requests without a missing span, or no others.
    pub(super) fn has_whole(&self) -> bool {
        self.whole.requests.len() >= WHOLE || self.torn.requests.is_empty()
    }

    /// The requests that can be compared.
    pub(super) fn visits(&self, whole: bool) -> Cow<'_, Visits> {
        if whole || self.torn.requests.is_empty() {
            return Cow::Borrowed(&self.whole);
        }
        let mut all = self.whole.clone();
        all.extend(&self.torn);
        all.sort();
        Cow::Owned(all)
    }
}

impl Visits {
    fn sort(&mut self) {
        for stay in self.stays.values_mut() {
            stay.passages.sort_by_key(|one| one.begin);
        }
    }

    /// The kind of each request.
    pub(super) fn kinds<'v>(&'v self, other: &'v Self) -> Vec<Kind<'v>> {
        let gateways = Gateways::of(self, other);
        let kind = |request: &'v Request| {
            let callee = request.handed_to.as_ref();
            (
                &request.entry,
                gateways.distinguishing_callee(&request.entry, callee),
            )
        };
        self.requests.iter().map(kind).collect()
    }

    /// To which endpoints requests of each entry were handed on.
    fn handed(&self) -> BTreeMap<&Endpoint, BTreeSet<&Endpoint>> {
        let mut all: BTreeMap<&Endpoint, BTreeSet<&Endpoint>> = BTreeMap::new();
        for request in &self.requests {
            if let Some(callee) = &request.handed_to {
                all.entry(&request.entry).or_default().insert(callee);
            }
        }
        all
    }

    fn extend(&mut self, later: &Self) {
        let earlier = self.requests.len();
        self.requests.extend(later.requests.iter().cloned());
        for (place, more) in &later.stays {
            let stay = self.stays.entry(place.clone()).or_default();
            let passages = more.passages.iter().map(|one| RequestAtPlace {
                request: one.request + earlier,
                ..*one
            });
            stay.passages.extend(passages);
            for (origin, (failed, visits)) in &more.counts {
                let counts = stay.counts.entry(origin.clone()).or_default();
                (counts.0, counts.1) = (counts.0 + failed, counts.1 + visits);
            }
            stay.given_up += more.given_up;
        }
        for (endpoint, (length, visits)) in &later.lengths {
            let lengths = self.lengths.entry(endpoint.clone()).or_default();
            (lengths.0, lengths.1) = (lengths.0 + length, lengths.1 + visits);
        }
        for (endpoint, more) in &later.shapes {
            let shapes = self.shapes.entry(endpoint.clone()).or_default();
            for (shape, origin, count) in more.iter() {
                shapes.add(shape.clone(), origin.clone(), count);
            }
        }
        for (endpoint, count) in &later.visited {
            *self.visited.entry(endpoint.clone()).or_default() += count;
        }
        for (endpoint, more) in &later.callers {
            let callers = self.callers.entry(endpoint.clone()).or_default();
            for (caller, count) in more {
                *callers.entry(caller.clone()).or_default() += count;
            }
        }
    }

    fn add(&mut self, tree: &Tree<'_>, root: usize, walk: &mut Walk, links: &Links) {
        let root_span = tree.node(root).span;
        let (begin, latency) = (root_span.start, root_span.length() as f64);
        let request = self.requests.len();
        let entry = own(root_span);
        let mut path = OnPath::default();
        walk.request(tree, root, &Unawaited::default(), &mut path);
        let mut times: BTreeMap<Place, ([f64; 3], u64)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            open.extend(below(tree, at));
            order.push(at);
        }
        let inclusive = inclusive(tree, &order);
        // Of each span, the visit that it is below of.
        let mut above: Vec<Option<usize>> = vec![None; tree.len()];
        // Likewise, the visit of another service.
        let mut outside: Vec<Option<usize>> = vec![None; tree.len()];
        let handed_to = handed_to(tree, root);
        for at in order {
            let span = tree.node(at).span;
            let callee = callee(tree, at, links);
            let is_visit = callee.is_none() && span.kind != SpanKind::Work;
            for child in below(tree, at) {
                above[child] = if is_visit { Some(at) } else { above[at] };
                let is_foreign = tree.node(child).span.service != span.service;
                outside[child] = if is_foreign {
                    above[child]
                } else {
                    outside[at]
                };
            }
            let origin = VisitOrigin {
                entry: entry.clone(),
                handed_to: handed_to.clone(),
                caller: outside[at].map(|caller| own(tree.node(caller).span)),
            };
            if span.kind == SpanKind::Server {
                let lengths = self.lengths.entry(own(span)).or_default();
                (lengths.0, lengths.1) = (lengths.0 + span.length() as f64, lengths.1 + 1);
            }
            if is_visit {
                let shapes = self.shapes.entry(own(span)).or_default();
                shapes.add(Shape::of(tree, at, links), origin.clone(), 1);
            }
            let visited = match &callee {
                None => is_visit.then(|| own(span)),
                // Of a callee that left no span it is known by its call alone.
                Some(callee) => foreign(tree, at).next().is_none().then(|| callee.clone()),
            };
            if let Some(visited) = visited {
                *self.visited.entry(visited.clone()).or_default() += 1;
                if let Some(caller) = above[at] {
                    let callers = self.callers.entry(visited).or_default();
                    *callers.entry(own(tree.node(caller).span)).or_default() += 1;
                }
            }
            let (place, time) = visit(tree, at, callee);
            let stay = self.stays.entry(place.clone()).or_default();
            let counts = stay.counts.entry(origin).or_default();
            counts.0 += u64::from(has_failed_itself(tree, at));
            counts.1 += 1;
            stay.given_up += u64::from(is_given_up(tree, at));
            // Of a call, lengths alone: the other end may have another clock.
            let inner = match place {
                Place::Within(_) => inclusive[at],
                Place::Between(..) => time,
            };
            let (times, visits) = times.entry(passed(tree, at, place)).or_default();
            times[0] += time as f64;
            times[1] += inner as f64;
            times[2] += path.of(span);
            *visits += 1;
        }
        self.requests.push(Request {
            entry,
            handed_to,
            begin,
            latency,
        });
        for (place, ([spent, inclusive, waited], visits)) in times {
            let passages = &mut self.stays.entry(place).or_default().passages;
            passages.push(RequestAtPlace {
                request,
                begin,
                visits,
                spent,
                inclusive,
                waited,
                latency,
            });
        }
    }
}

/// The one endpoint of another service that the entry's visited; `None`: several, or none.
fn handed_to(tree: &Tree<'_>, root: usize) -> Option<Endpoint> {
    let service = &tree.node(root).span.service;
    let mut found: BTreeSet<Endpoint> = BTreeSet::new();
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        for child in below(tree, at) {
            let span = tree.node(child).span;
            match span.service == *service {
                true => open.push(child),
                false => drop(found.insert(own(span))),
            }
        }
    }
    found.pop_first().filter(|_| found.is_empty())
}

/// How much of each span is on the critical path.
#[derive(Default)]
struct OnPath(HashMap<SpanId, Nanos>);

impl OnPath {
    fn of(&self, span: &Span) -> f64 {
        self.0.get(&span.id).copied().unwrap_or(0) as f64
    }
}

impl<'a> Sink<'a> for OnPath {
    fn on_path(&mut self, _: &'a Span, _: Nanos, _: Nanos) {}

    fn spend(&mut self, span: &'a Span, _: &'a Name, _: Cause, length: Nanos) {
        *self.0.entry(span.id).or_default() += length;
    }
}

pub(super) fn own(span: &Span) -> Endpoint {
    Endpoint {
        service: span.service.clone(),
        name: span.name.clone(),
    }
}

pub(super) fn below(tree: &Tree<'_>, at: usize) -> impl Iterator<Item = usize> {
    tree.children(at).map(|place| tree.child(place))
}

/// Spans of other services below one.
pub(super) fn foreign<'a>(tree: &Tree<'a>, at: usize) -> impl Iterator<Item = &'a Span> {
    let own = &tree.node(at).span.service;
    below(tree, at)
        .map(|child| tree.node(child).span)
        .filter(move |child| child.service != *own)
}

/// What a span calls, if it is a call: one that says so, or that holds nothing but what
/// happened in another service. Without a callee's span it is what its siblings call. A message
/// that is sent is none.
pub(super) fn callee(tree: &Tree<'_>, at: usize, links: &Links) -> Option<Endpoint> {
    let span = tree.node(at).span;
    match (span.kind, foreign(tree, at).next()) {
        (SpanKind::Server | SpanKind::Work, _) => None,
        (SpanKind::Internal, _) if links.is_sent(tree, at) => None,
        (_, Some(callee)) => Some(own(callee)),
        (SpanKind::Client, None) => {
            let call = call(span);
            Some(links.answers(&call).cloned().unwrap_or(call.1))
        }
        (SpanKind::Internal, None) => None,
    }
}

/// Where a visit's time passed. Of a call whose callee left no span it is not known how much
/// is the callee's, so it has a place of its own.
fn passed(tree: &Tree<'_>, at: usize, place: Place) -> Place {
    let span = tree.node(at).span;
    match (&place, foreign(tree, at).next()) {
        (Place::Between(..), None) => {
            let (caller, endpoint) = call(span);
            Place::Between(caller, endpoint)
        }
        _ => place,
    }
}

/// How long spans and the stretches of their service below them lasted, each while nothing below
/// it did; `order` has every span before those below it.
fn inclusive(tree: &Tree<'_>, order: &[usize]) -> Vec<Nanos> {
    let mut sums: Vec<Nanos> = vec![0; tree.len()];
    for at in order.iter().rev() {
        let inner = |child: &usize| {
            let is_call = foreign(tree, *child).next().is_some();
            tree.node(*child).span.kind == SpanKind::Internal && !is_call
        };
        let within = below(tree, *at).filter(inner).map(|child| sums[child]);
        let within = within.fold(0, Nanos::saturating_add);
        sums[*at] = alone(tree, *at).saturating_add(within);
    }
    sums
}

/// Where a span, which may be a call, spent how long, without what is below it.
fn visit(tree: &Tree<'_>, at: usize, callee: Option<Endpoint>) -> (Place, Nanos) {
    let span = tree.node(at).span;
    match callee {
        None => (Place::Within(own(span)), alone(tree, at)),
        Some(callee) => {
            let mut foreign = foreign(tree, at);
            // Lengths alone: the other end may have another clock.
            let time = match (foreign.next(), foreign.next()) {
                (Some(one), None) => span.length().saturating_sub(one.length()),
                _ => alone(tree, at),
            };
            (Place::Between(span.service.clone(), callee), time)
        }
    }
}

/// How long a span lasted while nothing below it did.
fn alone(tree: &Tree<'_>, at: usize) -> Nanos {
    let span = tree.node(at).span;
    let children = move || below(tree, at).map(move |child| tree.node(child).span);
    let skews = skews(span, children);
    let within = |child: &Span| {
        let skew = skews.get(&child.service).copied().unwrap_or(0);
        let placed = |time: Nanos| {
            let time = time.saturating_add_signed(skew);
            time.max(span.start).min(span.end)
        };
        (placed(child.start), placed(child.end))
    };
    let mut ran: Vec<(Nanos, Nanos)> = children().map(within).collect();
    ran.sort_unstable();
    let (mut covered, mut until) = (0, span.start);
    for (start, end) in ran {
        let start = start.max(until);
        if start < end {
            (covered, until) = (covered + (end - start), end);
        }
    }
    span.length().saturating_sub(covered)
}

/// How far what other services did below a span must be moved to lie within it: what seems to begin
/// before its cause has another clock.
fn skews<'a, C: Iterator<Item = &'a Span>>(
    span: &Span,
    children: impl Fn() -> C,
) -> BTreeMap<&'a Name, i64> {
    let is_early = |start: Nanos| start.saturating_add(TOLERANCE) < span.start;
    let service = &span.service;
    let foreign = || children().filter(move |child| child.service != *service);
    // Nearly all have one clock, or clocks that agree.
    if !foreign().any(|child| is_early(child.start)) {
        return BTreeMap::new();
    }
    let mut extents: BTreeMap<&Name, (Nanos, Nanos)> = BTreeMap::new();
    for child in foreign() {
        let own = (child.start, child.end);
        let extent = extents.entry(&child.service).or_insert(own);
        *extent = (extent.0.min(own.0), extent.1.max(own.1));
    }
    let skew = |(service, (start, end)): (&'a Name, (Nanos, Nanos))| {
        let room = span.length().checked_sub(end.saturating_sub(start))?;
        let middle = span.start + room / 2;
        let skew = middle.cast_signed().wrapping_sub(start.cast_signed());
        is_early(start).then_some((service, skew))
    };
    extents.into_iter().filter_map(skew).collect()
}

fn has_failed_itself(tree: &Tree<'_>, at: usize) -> bool {
    let failed = |span: &Span| span.has_failed() || !span.cause.is_empty();
    failed(tree.node(at).span) && !below(tree, at).any(|child| failed(tree.node(child).span))
}

/// Whether a call failed although who was called went well, and took longer than its caller waited.
fn is_given_up(tree: &Tree<'_>, at: usize) -> bool {
    let span = tree.node(at).span;
    let outlasts = |callee: &Span| callee.length() > span.length();
    span.kind == SpanKind::Client && has_failed_itself(tree, at) && foreign(tree, at).any(outlasts)
}
