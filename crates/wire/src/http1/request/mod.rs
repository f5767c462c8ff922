//! Requests of HTTP/1.1 (RFC 9112), for the server's side.
//!
//! What is refused although RFC 9112 lets a server accept it, because two readers of one
//! connection may take it in two ways: a bare LF, a list of lengths, a coding beside
//! `chunked`. `Content-Length` beside `chunked` is accepted as gorouter does (the coding
//! counts), and the connection then ends with the answer.

mod error;
mod framing;
mod head;
mod scanner;
mod target;
#[cfg(test)]
mod tests;

pub use error::RequestError;
pub use head::{RequestBody, RequestHead};
pub use scanner::{BodyScan, RequestScanner};
