//! Keys that have no effect here.

use document::Form;

/// Keys of gorouter that have no effect here.
pub(super) fn not_served(form: &mut Form<'_>) {
    const METRICS: &str = "metrics are Prometheus'; envelopes tell of requests";
    form.ignored(&[
        ("debug_addr", "there is no pprof"),
        (
            "ip_local_port_range",
            "gorouter does not use it either; it is for the kernel's settings",
        ),
        (
            "healthcheck_poll_interval",
            "it is for the health checker beside gorouter",
        ),
        (
            "healthcheck_timeout",
            "it is for the health checker beside gorouter",
        ),
        (
            "max_header_bytes",
            "gorouter does not use it any more either; its successor is max_request_header_bytes",
        ),
        (
            "enable_http1_concurrent_read_write",
            "bodies always flow both ways at once",
        ),
        (
            "only_trust_client_ca_certs",
            "only client_ca_certs are ever trusted",
        ),
        (
            "load_balancer_healthy_threshold",
            "gorouter does not use it either",
        ),
        (
            "publish_start_message_interval",
            "gorouter does not use it either",
        ),
        (
            "endpoint_keep_alive_probe_interval",
            "connections to backends are not probed",
        ),
        (
            "route_latency_metric_muzzle_duration",
            "registrations of the first 20 s are not measured",
        ),
        (
            "route_services_internal_server_port",
            "requests that the router sends to itself need no port",
        ),
        (
            "token_fetcher_max_retries",
            "tokens are fetched with fixed retries",
        ),
        (
            "token_fetcher_retry_interval",
            "tokens are fetched with fixed retries",
        ),
        (
            "token_fetcher_expiration_buffer_time",
            "tokens are renewed 30 s before they expire",
        ),
        (
            "max_idle_conns",
            "idle connections are bounded for each host: max_idle_conns_per_host",
        ),
        ("per_request_metrics_reporting", METRICS),
    ]);
}
