//! Work beside requests.
