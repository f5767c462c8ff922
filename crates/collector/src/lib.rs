//! A collector of spans: it takes them in over OTLP (HTTP and gRPC) and Zipkin's API, keeps
//! the newest within bounds, and answers questions about them. Graphs have one inside.

pub mod answer;
mod grpc;
mod heavy;
mod intake;
pub mod kept;
mod server;

pub use grpc::Grpc;
pub use heavy::Heavy;
pub use intake::{BODY_BYTES, BODY_WITHIN, Form, Intake, IntakeResult};
pub use server::{Collector, run_blocking, stopping, unread};
