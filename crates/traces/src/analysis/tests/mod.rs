mod locks;
mod paths;
mod random;
mod spans;

use spans::*;

use crate::{Span, SpanKind};
