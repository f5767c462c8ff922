//! Bodies of requests, within bounds.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use net::{BodyError, Incoming};
use tokio::sync::Semaphore;

/// Bytes of a place.
const PLACE: u64 = 1024;

/// Reads bodies.
pub(crate) struct Bodies {
    /// Bytes of one body.
    most: usize,
    within: Duration,
    places: Semaphore,
    all_places: u32,
}

/// Why there is no body.
pub(super) enum BodyRejection {
    /// It did not arrive as it should.
    Body(BodyError),
    /// Too many others are being read.
    Busy,
}

impl Bodies {
    /// Bodies of at most `most` bytes, and of `at_once` bytes at the same time.
    pub(crate) fn new(most: usize, at_once: usize, within: Duration) -> Self {
        let places = (at_once.max(most) as u64).div_ceil(PLACE);
        let all_places = u32::try_from(places).unwrap_or(u32::MAX >> 4);
        Self {
            most,
            within,
            places: Semaphore::new(all_places as usize),
            all_places,
        }
    }

    /// The whole body. Its announced length, or else the longest that it may have, counts
    /// until it is read.
    pub(super) async fn read(&self, body: Incoming) -> Result<Bytes, BodyRejection> {
        let hint = body.size_hint();
        let length = hint.upper().unwrap_or(self.most as u64);
        let places = u32::try_from(length.div_ceil(PLACE)).unwrap_or(u32::MAX);
        let places = self.places.acquire_many(places.min(self.all_places));
        let Ok(Ok(_places)) = tokio::time::timeout(self.within, places).await else {
            return Err(BodyRejection::Busy);
        };
        let read = net::read_body(body, self.most, self.within).await;
        read.map_err(BodyRejection::Body)
    }
}
