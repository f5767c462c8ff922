//! A dashboard of Grafana over the numbers that are exported.

use serde_json::{Value, json};

use super::{
    CORES, DESCRIPTORS, ENTITIES, FAULT, LOAD_BACKLOG, LOAD_IN_FLIGHT, LOAD_LATENCY, LOAD_RATE,
    LOOP, MEMORY, Metric, PROBE_LATENCY, PROBE_UP, PROBE_VALUE, STEP, THREADS,
};

/// Title, unit as Grafana names units, what is drawn, and the legend of a line.
type Panel = (&'static str, &'static str, Metric, &'static str);

const PANELS: [Panel; 13] = [
    (
        "Requests a second",
        "reqps",
        LOAD_RATE,
        "{{step}} {{load}} {{outcome}}",
    ),
    (
        "Latency from when it was due",
        "s",
        LOAD_LATENCY,
        "{{step}} {{load}} {{quantile}}",
    ),
    ("In flight", "short", LOAD_IN_FLIGHT, "{{step}} {{load}}"),
    (
        "Due and not sent",
        "short",
        LOAD_BACKLOG,
        "{{step}} {{load}}",
    ),
    ("Entities", "short", ENTITIES, "{{what}} {{state}}"),
    ("Turns of loops", "s", LOOP, "{{loop}}"),
    ("Probes: well or not", "short", PROBE_UP, "{{probe}} {{of}}"),
    ("Probes: latency", "s", PROBE_LATENCY, "{{probe}} {{of}}"),
    ("Probes: values", "short", PROBE_VALUE, "{{probe}} {{of}}"),
    ("Processors", "short", CORES, "{{system}}"),
    ("Memory", "bytes", MEMORY, "{{system}}"),
    ("Descriptors", "short", DESCRIPTORS, "{{system}}"),
    ("Threads", "short", THREADS, "{{system}}"),
];

const WIDTH: usize = 12;
const HEIGHT: usize = 8;

/// The dashboard, to be imported into Grafana: it asks for the Prometheus that has the numbers, and
/// lets choose runs. Steps and faults are stretches across all charts.
#[must_use]
pub fn dashboard() -> Value {
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let panels = PANELS.iter().enumerate().map(|(number, panel)| {
        let (title, unit, metric, legend) = panel;
        json!({
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "description": metric.about,
            "datasource": source,
            "gridPos": {
                "x": number % 2 * WIDTH, "y": number / 2 * HEIGHT, "w": WIDTH, "h": HEIGHT,
            },
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [{
                "refId": "A",
                "datasource": source,
                "expr": of_run(*metric, ""),
                "legendFormat": legend,
            }],
        })
    });
    let stretch = |name: &str, metric: Metric, colour: &str, title: &str| {
        json!({
            "name": name,
            "enable": true,
            "datasource": source,
            "iconColor": colour,
            "expr": of_run(metric, " == 1"),
            "step": "1s",
            "titleFormat": title,
        })
    };
    json!({
        "title": "Headroom: runs",
        "uid": "headroom-runs",
        "tags": ["headroom"],
        "schemaVersion": 39,
        "editable": true,
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            {
                "name": "run", "label": "Run", "type": "query", "datasource": source,
                "query": {"query": format!("label_values({}, run)", STEP.name), "refId": "run"},
                "refresh": 2, "sort": 2, "multi": true, "includeAll": false,
            },
        ]},
        "annotations": {"list": [
            stretch("Steps", STEP, "blue", "{{step}}"),
            stretch("Faults", FAULT, "red", "{{kind}} {{targets}}"),
        ]},
        "panels": panels.collect::<Vec<_>>(),
    })
}

fn of_run(metric: Metric, more: &str) -> String {
    format!("{}{{run=~\"$run\"}}{more}", metric.name)
}
