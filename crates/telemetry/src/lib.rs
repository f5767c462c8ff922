//! Structured logs in lager's JSON form, and Prometheus text.
