//! What stands between the systems and loads of a run, where its faults disturb connections:
//! proxies, or rules of the kernel that lead connections on.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread::JoinHandle;

use lab_experiment::plan::{Connection, FaultMechanism, Plan};
use lab_faults::kernel::{self, Lead};
use lab_faults::proxy::{Protocol, Proxy, ProxyError, ProxySettings};
use tokio::sync::oneshot;

use crate::processes::Addresses;

/// Most connections, or clients over UDP, through one proxy; each takes at most two
/// descriptors.
const MOST_CONNECTIONS: usize = 16_384;

/// The proxies of a run, on a thread of their own: what passes through them waits for
/// nothing else that the run does.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    running: BTreeMap<Connection, Proxy>,
    /// Connections that the kernel leads on, and how.
    led: BTreeMap<Connection, Lead>,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Proxies {
    /// Has each connection that has an address for it led on, by the kernel or by a proxy.
    ///
    /// # Errors
    /// When the kernel refuses, a proxy cannot listen, or their thread cannot be started.
    pub(crate) fn start(addresses: &Addresses, plan: &Plan) -> Result<Self, String> {
        let (mut led, mut wanted) = (BTreeMap::new(), Vec::new());
        for (connection, listen, upstream) in addresses.proxies() {
            let protocol = match plan.is_over_udp(connection) {
                true => Protocol::Udp,
                false => Protocol::Tcp,
            };
            match plan.way(connection) {
                FaultMechanism::Rules => {
                    let lead = Lead {
                        protocol,
                        from: listen,
                        to: upstream,
                    };
                    led.insert(connection.clone(), lead);
                }
                FaultMechanism::Proxy { .. } => {
                    let settings = ProxySettings {
                        protocol,
                        listen: at(listen),
                        upstream: at(upstream),
                        seed: plan.seed,
                        most_connections: MOST_CONNECTIONS,
                    };
                    wanted.push((connection.clone(), settings));
                }
            }
        }
        if !led.is_empty() {
            let leads: Vec<Lead> = led.values().copied().collect();
            kernel::lead(&leads).map_err(|error| error.to_string())?;
        }
        if wanted.is_empty() {
            return Ok(Self {
                running: BTreeMap::new(),
                led,
                thread: None,
            });
        }
        let (tell, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("start the proxies: {error}"))?;
        let thread = std::thread::Builder::new().name("proxies".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                // The run is gone, or it waits for this.
                let _ = tell.send(all(wanted).await);
                let _ = stopped.await;
            });
        });
        let thread = thread.map_err(|error| format!("start the proxies: {error}"))?;
        let running = started
            .recv()
            .map_err(|_| "the proxies ended at once".to_owned())?;
        Ok(Self {
            running: running.map_err(|error| error.to_string())?,
            led,
            thread: Some((stop, thread)),
        })
    }

    /// How the kernel leads a connection on, if it does.
    pub(crate) fn lead(&self, connection: &Connection) -> Option<Lead> {
        self.led.get(connection).copied()
    }

    /// The proxy of a connection.
    pub(crate) fn of(&self, connection: &Connection) -> Option<&Proxy> {
        self.running.get(connection)
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        self.running.clear();
        if let Some((stop, thread)) = self.thread.take() {
            let _ = stop.send(());
            // It ends at once, for nothing else holds it.
            let _ = thread.join();
        }
    }
}

async fn all(
    wanted: Vec<(Connection, ProxySettings)>,
) -> Result<BTreeMap<Connection, Proxy>, ProxyError> {
    let mut running = BTreeMap::new();
    for (connection, settings) in wanted {
        running.insert(connection, Proxy::start(settings).await?);
    }
    Ok(running)
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
