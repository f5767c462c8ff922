//! A text that no log shows.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::{Kind, Value};

/// A password, key or token of the settings: a text in every way, but that `Debug` keeps
/// it to itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Deref for Secret {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

impl DerefMut for Secret {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0.is_empty() {
            true => "Secret(none)",
            false => "Secret(..)",
        })
    }
}

impl Kind for Secret {
    const EXPECTED: &'static str = String::EXPECTED;
    const EXAMPLE: &'static str = String::EXAMPLE;

    fn read(value: &Value) -> Option<Self> {
        String::read(value).map(Self)
    }

    /// Nothing: settings are printed without their secrets.
    fn write(&self) -> String {
        String::new().write()
    }
}
