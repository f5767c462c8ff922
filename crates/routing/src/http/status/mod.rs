//! What operators and load balancers ask: is it healthy, which routes are there. Paths,
//! headers and bodies are gorouter's (a602bb6).

mod health;
mod routes;
mod server;
#[cfg(test)]
mod tests;
mod varz;

pub use health::{Health, Phase};
pub use server::{Endpoints, StatusServer};
pub use varz::{Fixed, SAMPLED_EVERY, Varz};
