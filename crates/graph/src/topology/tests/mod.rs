mod generated;
mod isotope;
mod mistakes;
mod reading;
mod round_trip;
mod testapi;
mod traced;
