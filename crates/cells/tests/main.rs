//! The tests of this crate through its public interface: one program, linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod auctioneer_rounds;
mod auctioneer_system;
mod auctioneer_vectors;
mod bbs_kill;
mod bbs_outbound;
mod bbs_replay;
mod bbs_resume;
mod bbs_service;
mod bbs_update;
mod client_asks;
mod client_failures;
mod client_json;
mod desired;
mod encryption;
mod evacuation;
mod fake_bbs;
mod killed_process;
mod locket;
mod locket_shared;
mod mutual_tls;
mod own_address;
mod patience;
#[path = "../../commit/src/postgres/cluster.rs"]
mod postgres_cluster;
mod quiet;
mod rep_bulk;
mod rep_fleet;
mod rep_life;
mod rep_process;
mod rep_vectors;
#[allow(unreachable_pub, reason = "modules of one test")]
mod replay;
mod restarts;
mod route_emitter;
mod same_json;
mod standby;
