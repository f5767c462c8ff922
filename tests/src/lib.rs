//! Starts the real binary and looks at what it does.
