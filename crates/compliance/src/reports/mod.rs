//! What agents report, and how that stands to what was expected of them.
