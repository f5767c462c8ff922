//! By example, by property, and over whole graphs with a simulated shell.

mod faults;
mod graphs;
mod harness;
mod memory;
mod plan;
mod properties;
mod retries;
mod simulation;
mod steps;
mod time;
