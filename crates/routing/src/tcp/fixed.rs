//! Fixed routes: told to the router again and again, without the backends that are not
//! healthy. What a load balancer in front of several routers needs.

use std::time::Duration;

use http::Uri;
use net::{Client, ClientOptions};
use telemetry::{Fields, Logger};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::{Change, TcpMapping};

/// Time between two looks at the health of a backend.
pub const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a connection for that, and for an answer.
const CHECK_WITHIN: Duration = Duration::from_secs(1);
/// Longest answer that is read.
const ANSWER_BYTES: usize = 64 * 1024;
/// Checks in a row without an answer after which a backend is left out.
const SILENT: u32 = 2;
/// What checks found, and nobody looked at yet; beyond that they wait.
const FOUND: usize = 64;

/// A route that stands in settings or on a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixedRoute {
    /// The route.
    pub mapping: TcpMapping,
    /// Where its backend says whether it is healthy; `None`: it is taken to be.
    pub health: Option<Uri>,
}

impl From<TcpMapping> for FixedRoute {
    fn from(mapping: TcpMapping) -> Self {
        Self {
            mapping,
            health: None,
        }
    }
}

/// Reads where a backend says whether it is healthy: `http://10.0.0.7:8080/health`.
///
/// # Errors
/// When it is no such address, in words.
pub fn health_address(text: &str) -> Result<Uri, String> {
    let uri: Option<Uri> = text.parse().ok();
    let uri = uri.filter(|uri| uri.scheme_str() == Some("http") && uri.authority().is_some());
    uri.ok_or_else(|| {
        format!("expected an address such as http://10.0.0.7:8080/health, found {text:?}")
    })
}

/// Tells the router of fixed routes until it is gone, before they are stale at the age of
/// `stale_after`, and whenever the health of a backend has turned. Of a route whose backends are
/// all unhealthy, all are told: what they say may be wrong, and nothing would be left.
pub async fn keep(
    routes: Vec<FixedRoute>,
    stale_after: Duration,
    changes: mpsc::Sender<Change>,
    logger: Logger,
) {
    let (tell, mut found) = mpsc::channel(FOUND);
    for (number, route) in routes.iter().enumerate() {
        if let Some(health) = route.health.clone() {
            tokio::spawn(net::boxed(look(number, health, tell.clone())));
        }
    }
    let mut standings = vec![BackendHealth::default(); routes.len()];
    // Three chances before the first one is stale.
    let every = stale_after / 4;
    let mut ticks = tokio::time::interval(every.max(Duration::from_millis(10)));
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some((number, health)) = found.recv() => {
                let (Some(standing), Some(route)) = (standings.get_mut(number), routes.get(number))
                else {
                    continue;
                };
                if !standing.observe(&health) {
                    continue;
                }
                log(&logger, route, &health);
            }
        }
        let change = Change::Full(usable(&routes, &standings));
        if changes.send(change).await.is_err() {
            return;
        }
    }
}

fn log(logger: &Logger, route: &FixedRoute, health: &Health) {
    let mapping = &route.mapping;
    let backend = format!("{}:{}", mapping.backend_ip, mapping.backend_port);
    let fields = Fields::new()
        .and("port", mapping.port)
        .and("backend", backend);
    match health {
        Health::Good => logger.info("backend-healthy", fields),
        Health::Bad(why) | Health::Unknown(why) => {
            logger.info("backend-unhealthy", fields.and("found", why.as_str()));
        }
    }
}

/// What a check found.
#[derive(Debug)]
enum Health {
    Good,
    /// The backend says that it is not healthy; how.
    Bad(String),
    /// It says nothing; why.
    Unknown(String),
}

/// Asks a backend again and again, until nobody wants to hear of it.
async fn look(number: usize, health: Uri, tell: mpsc::Sender<(usize, Health)>) {
    let client = Client::new(ClientOptions {
        connections_per_host: 1,
        connect_within: CHECK_WITHIN,
        answer_within: CHECK_WITHIN,
        answer_bytes: ANSWER_BYTES,
        tls: None,
    });
    let mut ticks = tokio::time::interval(CHECK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found = match client.get(&health).await {
            Ok(answer) if answer.status.is_success() => Health::Good,
            Ok(answer) => Health::Bad(answer.status.to_string()),
            Err(error) => Health::Unknown(error.to_string()),
        };
        if tell.send((number, found)).await.is_err() {
            return;
        }
    }
}

/// What is thought of a backend's health. It is healthy until it is known better.
#[derive(Debug, Clone, Default)]
struct BackendHealth {
    unhealthy: bool,
    /// Checks without an answer since the last one that had one.
    silent: u32,
}

impl BackendHealth {
    /// Takes in what a check found, and says whether it turns anything: what a backend says
    /// itself does at once, that it says nothing may be an accident.
    fn observe(&mut self, found: &Health) -> bool {
        self.silent = match found {
            Health::Unknown(_) => self.silent.saturating_add(1),
            Health::Good | Health::Bad(_) => 0,
        };
        let unhealthy = match found {
            Health::Good => false,
            Health::Bad(_) => true,
            Health::Unknown(_) => self.unhealthy || self.silent >= SILENT,
        };
        std::mem::replace(&mut self.unhealthy, unhealthy) != unhealthy
    }
}

/// The routes that connections may take now.
fn usable(routes: &[FixedRoute], standings: &[BackendHealth]) -> Vec<TcpMapping> {
    let all = || routes.iter().zip(standings);
    let place = |mapping: &TcpMapping| (mapping.port, mapping.backend_sni_hostname.clone());
    let any_healthy = |of: &TcpMapping| {
        let of = place(of);
        all().any(|(route, standing)| !standing.unhealthy && place(&route.mapping) == of)
    };
    let taken =
        all().filter(|(route, standing)| !standing.unhealthy || !any_healthy(&route.mapping));
    taken.map(|(route, _)| route.mapping.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16, backend_port: u16) -> FixedRoute {
        FixedRoute::from(TcpMapping {
            port,
            backend_ip: "10.0.0.7".to_owned(),
            backend_port,
            ..TcpMapping::default()
        })
    }

    #[test]
    fn what_a_backend_says_counts_at_once_and_silence_when_it_lasts() {
        let silent = || Health::Unknown("no answer".to_owned());
        let bad = || Health::Bad("503 Service Unavailable".to_owned());
        let mut standing = BackendHealth::default();
        let turns = [
            (Health::Good, false),
            (bad(), true),
            (bad(), false),
            (silent(), false),
            (Health::Good, true),
            (silent(), false),
            (Health::Good, false),
            (silent(), false),
            (silent(), true),
            (silent(), false),
            (Health::Good, true),
        ];
        for (number, (found, turned)) in turns.iter().enumerate() {
            assert_eq!(standing.observe(found), *turned, "{number}: {found:?}");
        }
    }

    #[test]
    fn unhealthy_backends_are_left_out_unless_nothing_would_be_left() {
        let routes = [to(1, 11), to(1, 12), to(2, 21), to(2, 22), to(3, 31)];
        let told = |unhealthy: &[usize]| -> Vec<u16> {
            let standings: Vec<BackendHealth> = (0..routes.len())
                .map(|number| BackendHealth {
                    unhealthy: unhealthy.contains(&number),
                    silent: 0,
                })
                .collect();
            let usable = usable(&routes, &standings);
            usable.iter().map(|mapping| mapping.backend_port).collect()
        };
        assert_eq!(told(&[]), [11, 12, 21, 22, 31]);
        assert_eq!(told(&[1]), [11, 21, 22, 31]);
        assert_eq!(told(&[0, 2]), [12, 22, 31]);
        assert_eq!(told(&[0, 1, 2, 4]), [11, 12, 22, 31]);
    }

    #[test]
    fn where_health_is_asked_is_an_address_of_http() {
        assert!(health_address("http://10.0.0.7:8080/health").is_ok());
        for wrong in [
            "https://10.0.0.7/health",
            "10.0.0.7:8080",
            "/health",
            "http://",
        ] {
            let error = health_address(wrong).unwrap_err();
            assert!(
                error.contains(wrong) && error.contains("expected"),
                "{error}"
            );
        }
    }
}
