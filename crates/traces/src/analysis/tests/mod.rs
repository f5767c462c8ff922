mod locks;
mod paths;
mod random;
mod said;
mod spans;

use spans::*;

use crate::{Span, SpanKind};
