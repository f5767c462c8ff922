//! The core NATS protocol: a client whose queues have bounds, and an endpoint that a
//! process can embed so that one machine needs no server.
