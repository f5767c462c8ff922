//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod api_client;
mod api_databases;
mod api_kill;
mod api_service;
mod golden;
mod http_router;
mod postgres_cluster;
mod registry;
mod running_api;
mod tcp;
