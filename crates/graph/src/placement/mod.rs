//! Where services run: processors of their own. Where a chain of services ran has moved its
//! median more than twofold, so it is told with every result.

mod rung;

pub use rung::Rung;
