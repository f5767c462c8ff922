//! What agents report, and how that stands to what was expected of them.
//!
//! An upload is unpacked ([`upload`]), its signature checked against the key of the node that
//! sent it ([`signature`]), and its lines read ([`runlog`]); older agents send
//! the same reports over syslog ([`syslog`]).

pub mod moment;
pub mod run_info;
pub mod runlog;
pub mod signature;
pub mod syslog;
pub mod upload;
