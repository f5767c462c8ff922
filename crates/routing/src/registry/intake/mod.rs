//! Messages into the table, one after the other.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telemetry::{Fields, Level, Logger};

use super::counters::{RegistryCounters, RegistryTotals};
use super::line_budget::LineBudget;
use super::message::{Message, MessageError, PartialMessage};
use crate::table::{
    Bound, Endpoint, Fingerprint, Modification, Nanos, Registered, RouteKey, Table, Text,
    Unregistered,
};

/// Lines about single messages that are written in a second. A flood of registrations
/// must not wait for its log.
const LINES_PER_SECOND: u32 = 200;

/// New routes in a row after which messages are read without a look whether they are known:
/// a router that begins hears of nothing else.
const FLOOD: u32 = 64;

/// Bytes of a payload that are shown.
const SHOWN_BYTES: usize = 1024;

/// Takes messages into a table, in the order in which they come.
pub struct Intake {
    table: Arc<Table>,
    counters: Arc<RegistryCounters>,
    http2: bool,
    logger: Logger,
    lines: LineBudget,
    /// Lines of errors have a budget of their own, so that good messages cannot hide them.
    errors: LineBudget,
    /// Latency is counted from then on: before, everything is late.
    latency_from: Nanos,
    /// Makes fingerprints that nobody else can make.
    hasher: RandomState,
    identity: String,
    /// New routes since anything else was registered.
    new_in_a_row: u32,
}

impl Intake {
    /// `http2`: whether backends that speak it are spoken to so. `latency_from`: when the
    /// time from change to registration begins to mean something.
    pub fn new(
        table: Arc<Table>,
        counters: Arc<RegistryCounters>,
        http2: bool,
        latency_from: Nanos,
        logger: Logger,
    ) -> Self {
        Self {
            table,
            counters,
            http2,
            logger,
            lines: LineBudget::new(LINES_PER_SECOND),
            errors: LineBudget::new(LINES_PER_SECOND),
            latency_from,
            hasher: RandomState::new(),
            identity: String::new(),
            new_in_a_row: 0,
        }
    }

    /// Takes messages, each a subject and a payload, that came by `now`.
    pub fn take<'a>(
        &mut self,
        messages: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        now: Nanos,
    ) {
        let counters = Arc::clone(&self.counters);
        counters.with(|totals| {
            for (subject, payload) in messages {
                self.one(subject, payload, now, totals);
            }
            let left_out = self.lines.left_out(now) + self.errors.left_out(now);
            if left_out > 0 {
                totals.lines_left_out += left_out;
                let fields = Fields::new().and("lines", left_out);
                self.logger.info("lines-left-out", fields);
            }
        });
    }

    fn one(&mut self, subject: &[u8], payload: &[u8], now: Nanos, totals: &mut RegistryTotals) {
        // Has a subscription of its own, and mostly no payload.
        if subject == b"router.greet" {
            return;
        }
        let registers = subject == b"router.register";
        let may_be_known = registers && self.new_in_a_row < FLOOD;
        let partial = may_be_known.then(|| PartialMessage::of(payload)).flatten();
        // Not made for what is heard for the first time: most of a flood of new routes.
        let mut fingerprint = None;
        if let Some(partial) = &partial {
            let make = || *fingerprint.get_or_insert_with(|| self.fingerprint(payload));
            if self
                .recognise_heartbeat(partial, make, now, totals)
                .is_some()
            {
                self.new_in_a_row = 0;
                return;
            }
        }
        let message = match Message::parse(payload) {
            Ok(message) => message,
            Err(error) => return self.refuse(subject, payload, &error, now, totals),
        };
        let fingerprint =
            fingerprint.filter(|_| partial.is_some_and(|partial| partial.agrees_with(&message)));
        match subject {
            b"router.register" => self.register(&message, fingerprint, now, totals),
            b"router.unregister" => self.unregister(&message, now, totals),
            _ => {}
        }
    }

    /// Takes a heartbeat that is known by its bytes. `None`: it has to be read; what it
    /// refreshed is refreshed once more then.
    fn recognise_heartbeat(
        &self,
        partial: &PartialMessage<'_>,
        mut fingerprint: impl FnMut() -> Fingerprint,
        now: Nanos,
        totals: &mut RegistryTotals,
    ) -> Option<()> {
        let (mut component, mut endpoints) = (Text::new(), 0);
        for uri in partial.uris() {
            let key = RouteKey::new(uri).ok()?;
            component = self
                .table
                .refresh(&key, &mut fingerprint, now, Endpoint::component)?;
            endpoints += 1;
        }
        totals.refreshed(&component, endpoints);
        Some(())
    }

    fn fingerprint(&self, payload: &[u8]) -> Fingerprint {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(payload);
        Fingerprint::new(hasher.finish()).unwrap_or(Fingerprint::MIN)
    }

    fn register(
        &mut self,
        message: &Message<'_>,
        fingerprint: Option<Fingerprint>,
        now: Nanos,
        totals: &mut RegistryTotals,
    ) {
        let mut identity = std::mem::take(&mut self.identity);
        message.identity(&mut identity);
        let registration = message.registration(&identity, self.http2, fingerprint);
        let component = message.component();
        let changed = message.endpoint_updated_at_ns.unwrap_or(0);
        for uri in message.uris() {
            let Ok(key) = RouteKey::new(uri) else {
                totals.invalid_routes += 1;
                continue;
            };
            let registered = self.table.register_with(&key, &registration, now);
            totals.registered(component, registered);
            self.new_in_a_row = match registered {
                Registered::Added { route: true } => self.new_in_a_row.saturating_add(1),
                _ => 0,
            };
            match registered {
                Registered::Added { route } => {
                    self.log("registered", route, &key, message, &identity, now);
                    self.note_latency(changed, now, totals);
                }
                Registered::Refused(bound) => self.over_bound(&key, &identity, bound, now),
                _ => {}
            }
        }
        self.identity = identity;
    }

    /// Notes the time from an endpoint's change to its first registration.
    fn note_latency(&self, changed: i64, now: Nanos, totals: &mut RegistryTotals) {
        if changed > 0 && now >= self.latency_from {
            let wall = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let late = wall.saturating_sub(Duration::from_nanos(changed.unsigned_abs()));
            totals.took(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn unregister(&mut self, message: &Message<'_>, now: Nanos, totals: &mut RegistryTotals) {
        let mut identity = std::mem::take(&mut self.identity);
        message.identity(&mut identity);
        for uri in message.uris() {
            let Ok(key) = RouteKey::new(uri) else {
                totals.invalid_routes += 1;
                continue;
            };
            let tag = Modification::default();
            let unregistered = self.table.unregister(&key, &identity, &tag, now);
            totals.unregistered(message.component(), unregistered);
            if let Unregistered::Removed { route } = unregistered {
                self.log("unregistered", route, &key, message, &identity, now);
            }
        }
        self.identity = identity;
    }

    fn over_bound(&mut self, key: &RouteKey<'_>, identity: &str, bound: Bound, now: Nanos) {
        if self.logger.enabled(Level::Error) && self.errors.take(now) {
            let fields = Fields::new()
                .and("uri", key.as_str())
                .and("backend", identity);
            self.logger.error("registration-refused", &bound, fields);
        }
    }

    fn refuse(
        &mut self,
        subject: &[u8],
        payload: &[u8],
        error: &MessageError,
        now: Nanos,
        totals: &mut RegistryTotals,
    ) {
        totals.invalid_messages += 1;
        if self.logger.enabled(Level::Error) && self.errors.take(now) {
            let shown = &payload[..payload.len().min(SHOWN_BYTES)];
            let fields = Fields::new()
                .and(
                    "subject",
                    String::from_utf8_lossy(&subject[..subject.len().min(128)]),
                )
                .and("payload", String::from_utf8_lossy(shown))
                .and("payload_bytes", payload.len());
            self.logger.error("validation-error", error, fields);
        }
    }

    /// `route-registered` and its kin, as gorouter names them.
    fn log(
        &mut self,
        what: &str,
        route: bool,
        key: &RouteKey<'_>,
        message: &Message<'_>,
        identity: &str,
        now: Nanos,
    ) {
        if !self.logger.enabled(Level::Info) {
            return;
        }
        if route && self.lines.take(now) {
            let fields = Fields::new().and("uri", key.as_str());
            self.logger.info(&format!("route-{what}"), fields);
        }
        if self.lines.take(now) {
            let fields = Fields::new()
                .and("uri", key.as_str())
                .and("backend", identity)
                .and("application_id", &*message.app)
                .and("instance_id", &*message.private_instance_id)
                .and("isolation_segment", &*message.isolation_segment)
                .and("isTLS", message.is_tls());
            self.logger.info(&format!("endpoint-{what}"), fields);
        }
    }
}
