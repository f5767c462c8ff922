//! Whether one version is worse than another.
