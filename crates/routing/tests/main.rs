//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod api_client;
mod authenticated_api;
mod differential;
#[path = "../../../tests/end_to_end/free_port.rs"]
mod free_port;
mod golden;
mod http_router;
mod registry;
#[path = "../../routing-api/tests/running_api/mod.rs"]
mod running_api;
mod tcp;
