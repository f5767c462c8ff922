//! Starts systems, drives entities, watches processes, follows logs, and records the run.
