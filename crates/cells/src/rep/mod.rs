//! Runs the work of a cell.
