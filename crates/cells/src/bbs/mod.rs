//! Keeps what is desired and what is actual, durably, and tells everybody.
