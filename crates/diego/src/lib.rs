//! Diego's wire: protobuf messages, paths, error types, JSON bodies, and a client.
