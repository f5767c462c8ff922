//! Orders to a fleet of simulated agents: some fall silent, as if their network were cut.
//!
//! Whoever simulates agents answers two requests at the address at which it says that it is
//! ready, each in plain HTTP:
//!
//! ```text
//! PUT /silent/7      {"agents":[[0,9],[42,42]],"back":"at once","flap_s":5.0}
//! DELETE /silent/7
//! ```
//!
//! The number is the order's: several may stand at a time, and an agent is silent while any of
//! them says so. [`Silence`] keeps them, and each agent asks its [`Agent`] before it speaks.
//!
//! What always holds: an order that is refused changes nothing; agents that no order names
//! are never silent; which half of a flap an agent is in depends on its number and the time
//! alone.

mod agent;
mod order;
mod requests;

pub use agent::{Agent, Silence};
pub use order::{Back, Order, OrderError};
pub use requests::{LONGEST_BODY, PATH};
