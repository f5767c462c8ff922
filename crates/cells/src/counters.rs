//! Numbers that a program tells of itself. Each is declared once: with its name on the page of
//! metrics, and with its help there as its documentation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use telemetry::prometheus::Page;

/// Declares a struct of numbers, and `write`, which adds all of them to a page in their order.
macro_rules! numbers {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $($(#[doc = $help:literal])+ $field:ident: $kind:ty = $metric:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        $visibility struct $name {
            $($(#[doc = $help])+ $visibility $field: $kind,)+
        }

        impl $name {
            fn write(&self, page: &mut telemetry::prometheus::Page) {
                $(self.$field.tell(page, $metric, concat!($($help),+).trim_start());)+
            }
        }
    };
}
pub(crate) use numbers;

/// A number that only rises.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn tell(&self, page: &mut Page, name: &str, help: &str) {
        page.counter(name, help, self.now());
    }
}

/// A sum of times.
#[derive(Debug, Default)]
pub(crate) struct Time(AtomicU64);

impl Time {
    pub(crate) fn add(&self, time: Duration) {
        self.0.fetch_add(nanoseconds(time), Relaxed);
    }

    pub(crate) fn tell(&self, page: &mut Page, name: &str, help: &str) {
        page.counter(name, help, seconds(&self.0));
    }
}

/// The time that the newest of something took.
#[derive(Debug, Default)]
pub(crate) struct LastTime(AtomicU64);

impl LastTime {
    pub(crate) fn set(&self, time: Duration) {
        self.0.store(nanoseconds(time), Relaxed);
    }

    pub(crate) fn tell(&self, page: &mut Page, name: &str, help: &str) {
        page.gauge(name, help, seconds(&self.0));
    }
}

/// A number as it is now.
#[derive(Debug, Default)]
pub(crate) struct Level(AtomicU64);

impl Level {
    pub(crate) fn set(&self, level: u64) {
        self.0.store(level, Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn tell(&self, page: &mut Page, name: &str, help: &str) {
        page.gauge(name, help, self.now());
    }
}

/// Whether something is so now: 1, or 0.
#[derive(Debug, Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn set(&self, is: bool) {
        self.0.store(is, Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub(crate) fn tell(&self, page: &mut Page, name: &str, help: &str) {
        page.gauge(name, help, u8::from(self.is_set()));
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn seconds(nanoseconds: &AtomicU64) -> f64 {
    Duration::from_nanos(nanoseconds.load(Relaxed)).as_secs_f64()
}
