//! Fixed routes of a settings file: `[[route]]` tables.

use document::Form;

use crate::tcp::FixedRoute;
use crate::tcp::fixed::health_address;

/// Every `[[route]]`, as the routing API would tell of it.
pub(super) fn routes(form: &mut Form<'_>) -> Vec<FixedRoute> {
    let mut routes: Vec<FixedRoute> = Vec::new();
    form.tables("route", &mut routes, route);
    for (index, route) in routes.iter().enumerate() {
        for (key, missing) in [
            ("port", route.mapping.port == 0),
            ("backend", route.mapping.backend_ip.is_empty()),
        ] {
            if missing {
                let number = index + 1;
                form.wrong("route", format!("expected {key} in [[route]] {number}"));
            }
        }
    }
    routes
}

fn route(form: &mut Form<'_>, fixed: &mut FixedRoute) {
    let mut health: Option<String> = None;
    form.value("health", "", &mut health);
    match health.map(|text| health_address(&text)).transpose() {
        Ok(health) => fixed.health = health,
        Err(message) => form.wrong("health", message),
    }
    let route = &mut fixed.mapping;
    // What is missing is said by the caller, once.
    route.port = 1;
    form.within("port", "", 1..=u16::MAX, &mut route.port);
    if !form.has("port") {
        route.port = 0;
    }
    let mut backend = String::new();
    form.value("backend", "", &mut backend);
    match place(&backend) {
        Some((host, port)) => (route.backend_ip, route.backend_port) = (host.to_owned(), port),
        None => {
            let message =
                format!("expected host:port such as \"10.0.0.7:9000\", found \"{backend}\"");
            form.wrong("backend", message);
            // Said already.
            route.backend_ip = backend;
        }
    }
    let mut name: Option<String> = None;
    form.value("server_name", "", &mut name);
    route.backend_sni_hostname = name.filter(|name| !name.is_empty());
    form.value("terminate_tls", "", &mut route.terminate_frontend_tls);
    let mut protocols: Vec<String> = Vec::new();
    form.value("protocols", "", &mut protocols);
    route.alpns = protocols.join(",");
    form.value("instance", "", &mut route.instance_id);
    if !route.instance_id.is_empty() {
        route.backend_tls_port = i64::from(route.backend_port);
    }
    form.value("show_certificate", "", &mut route.enable_backend_mtls);
}

/// Host and port; the host of IPv6 stands in brackets.
fn place(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then_some((host, port))
}
