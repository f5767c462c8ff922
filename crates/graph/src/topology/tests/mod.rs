mod mistakes;
mod reading;
mod round_trip;
