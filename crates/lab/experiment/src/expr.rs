//! The small language of conditions and expectations.

use serde::Serialize;

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expr {
    /// The expression as written, with names filled in.
    pub text: String,
}
