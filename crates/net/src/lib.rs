//! HTTP/1.1 servers with limits, pooled clients, and TLS, for control planes.
