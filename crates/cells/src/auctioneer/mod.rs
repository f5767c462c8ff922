//! Places work on cells.
