//! Routes as a desired LRP carries them: JSON texts under the names of their routers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Routes for HTTP routers.
const HTTP: &str = "cf-router";
/// Routes for TCP routers.
const TCP: &str = "tcp-router";
/// Names for service discovery.
const INTERNAL: &str = "internal-router";

/// Why routes cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read the routes for {router:?}: {cause}")]
pub struct RoutesError {
    router: &'static str,
    cause: serde_json::Error,
}

/// All routes of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Routes {
    pub(super) http: Vec<HttpRoute>,
    pub(super) tcp: Vec<TcpRoute>,
    pub(super) internal: Vec<String>,
}

/// A host name, or host name and path, that leads to a port.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HttpRoute {
    pub(super) uri: String,
    pub(super) port: u32,
    pub(super) service_url: String,
    pub(super) segment: String,
    pub(super) protocol: String,
    pub(super) options: Option<Value>,
}

/// An external port that leads to a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TcpRoute {
    pub(super) group: String,
    pub(super) external_port: u16,
    pub(super) port: u32,
    pub(super) sni: Option<String>,
}

/// An entry of `cf-router`. Null is as good as nothing, as in Go.
#[derive(Deserialize, Default)]
#[serde(default)]
struct HttpEntry {
    hostnames: Option<Vec<String>>,
    port: Option<u32>,
    route_service_url: Option<String>,
    isolation_segment: Option<String>,
    protocol: Option<String>,
    options: Option<Value>,
}

/// An entry of `tcp-router`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TcpEntry {
    router_group_guid: Option<String>,
    external_port: Option<u32>,
    container_port: Option<u32>,
    backend_sni_hostname: Option<String>,
}

/// An entry of `internal-router`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct InternalEntry {
    hostname: Option<String>,
}

impl Routes {
    /// Reads the routes of a desired LRP. Those of unknown routers are not ours.
    pub(super) fn read(texts: &BTreeMap<String, Vec<u8>>) -> Result<Self, RoutesError> {
        let mut routes = Self::default();
        for entry in entries::<HttpEntry>(texts, HTTP)? {
            // HTTP/1.1 is what a router takes for granted.
            let protocol = entry.protocol.filter(|protocol| protocol != "http1");
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            for uri in entry.hostnames.unwrap_or_default() {
                routes.http.push(HttpRoute {
                    uri,
                    port: entry.port.unwrap_or_default(),
                    service_url: text(&entry.route_service_url),
                    segment: text(&entry.isolation_segment),
                    protocol: text(&protocol),
                    options: entry.options.clone(),
                });
            }
        }
        for entry in entries::<TcpEntry>(texts, TCP)? {
            let external_port = entry.external_port.unwrap_or_default();
            // No router can listen on another one.
            if let Ok(external_port @ 1..) = u16::try_from(external_port) {
                routes.tcp.push(TcpRoute {
                    group: entry.router_group_guid.unwrap_or_default(),
                    external_port,
                    port: entry.container_port.unwrap_or_default(),
                    sni: entry.backend_sni_hostname.filter(|sni| !sni.is_empty()),
                });
            }
        }
        let names = entries::<InternalEntry>(texts, INTERNAL)?;
        routes.internal = names.into_iter().filter_map(|it| it.hostname).collect();
        Ok(routes)
    }

    /// Adds those of `others` that lead from elsewhere than these.
    pub(super) fn keep(&mut self, others: &Self) {
        let missing = |of: &&HttpRoute| {
            let same = |it: &HttpRoute| it.uri == of.uri && it.port == of.port;
            !self.http.iter().any(same)
        };
        let http: Vec<_> = others.http.iter().filter(missing).cloned().collect();
        self.http.extend(http);
        for route in &others.tcp {
            if !self.tcp.contains(route) {
                self.tcp.push(route.clone());
            }
        }
        for name in &others.internal {
            if !self.internal.contains(name) {
                self.internal.push(name.clone());
            }
        }
    }
}

fn entries<T: DeserializeOwned>(
    texts: &BTreeMap<String, Vec<u8>>,
    router: &'static str,
) -> Result<Vec<T>, RoutesError> {
    let Some(text) = texts.get(router) else {
        return Ok(Vec::new());
    };
    let entries: Option<Vec<T>> =
        serde_json::from_slice(text).map_err(|cause| RoutesError { router, cause })?;
    Ok(entries.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(router: &str, json: &str) -> BTreeMap<String, Vec<u8>> {
        [(router.to_owned(), json.as_bytes().to_vec())].into()
    }

    #[test]
    fn routes_are_read_by_router() {
        let mut all = texts(
            HTTP,
            r#"[{"hostnames":["a.x","b.x/p"],"port":8080,"route_service_url":null,"protocol":"http1","options":null},
                {"hostnames":["c.x"],"port":9090,"isolation_segment":"s","protocol":"http2","options":{"loadbalancing":"hash"},"other":1}]"#,
        );
        all.append(&mut texts(
            TCP,
            r#"[{"router_group_guid":"g","external_port":1883,"container_port":8080,"backend_sni_hostname":"s.x"},{"external_port":70000}]"#,
        ));
        all.append(&mut texts(INTERNAL, r#"[{"hostname":"a.apps.internal"}]"#));
        all.append(&mut texts("diego-ssh", "{}"));
        let routes = Routes::read(&all).unwrap();
        let http: Vec<_> = routes.http.iter().map(|it| (&*it.uri, it.port)).collect();
        assert_eq!(http, [("a.x", 8080), ("b.x/p", 8080), ("c.x", 9090)]);
        assert_eq!(
            (&*routes.http[0].protocol, &*routes.http[2].protocol),
            ("", "http2")
        );
        assert_eq!(routes.http[0].options, None);
        assert!(routes.http[2].options.is_some());
        assert_eq!(routes.http[2].segment, "s");
        let [tcp] = &routes.tcp[..] else {
            panic!("{:?}", routes.tcp);
        };
        assert_eq!(
            (tcp.external_port, tcp.port, tcp.sni.as_deref()),
            (1883, 8080, Some("s.x"))
        );
        assert_eq!(routes.internal, ["a.apps.internal"]);
    }

    #[test]
    fn what_is_no_list_is_an_error_that_names_its_router() {
        let error = Routes::read(&texts(HTTP, "{}")).unwrap_err().to_string();
        assert!(error.contains("cf-router"), "{error}");
        assert_eq!(
            Routes::read(&texts(TCP, "null")).unwrap(),
            Routes::default()
        );
    }
}
