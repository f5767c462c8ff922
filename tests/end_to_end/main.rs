//! Starts the real binary as a user does and looks at what it prints, leaves and
//! leaves behind.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod auction_sim;
mod bad_input;
mod cells_experiments;
mod cfdot;
mod compare;
mod compliance;
mod documents;
mod first_steps;
mod free_port;
mod gate;
mod graph;
mod graph_experiments;
mod growth;
mod history_store;
mod interruptions;
mod knee;
mod lab;
mod lifecycle;
mod load;
mod mutual_tls;
mod page;
#[path = "../../crates/commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod router;
mod router_experiments;
mod runs;
mod stored_runs;
mod sweep;
mod traces;
mod two_users;
