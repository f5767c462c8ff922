//! Which applications were called lately, for those who read it from NATS
//! (`publish_active_apps_interval`).

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::table::Text;

/// Where they are published.
pub(crate) const SUBJECT: &str = "router.active_apps";

/// What one thread has noted since the last time that it was asked. There are no more than the
/// table has applications.
#[derive(Debug, Default)]
pub(crate) struct ActiveApps(Mutex<HashSet<Text>>);

impl ActiveApps {
    /// Notes that an application was called. `false`: it was not noted, as somebody reads just
    /// now, whom no request waits for.
    pub(super) fn note(&self, app: &Text) -> bool {
        let Ok(mut apps) = self.0.try_lock() else {
            return false;
        };
        if !apps.contains(app) {
            apps.insert(app.clone());
        }
        true
    }

    /// Moves what was noted to `all`.
    pub(super) fn move_to(&self, all: &mut BTreeSet<Text>) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.extend(noted);
    }
}

/// The message: a list of guids in JSON, compressed as zlib does.
///
/// # Errors
/// None, as memory takes everything.
pub(crate) fn message(apps: &BTreeSet<Text>) -> io::Result<Vec<u8>> {
    let names: Vec<&str> = apps.iter().map(Text::as_str).collect();
    let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
    out.write_all(&serde_json::to_vec(&names)?)?;
    out.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn each_application_is_told_once_in_each_message() {
        let (one, two) = (ActiveApps::default(), ActiveApps::default());
        for app in ["b", "a", "b"] {
            assert!(one.note(&Text::from(app)));
        }
        two.note(&Text::from("b"));
        let told = || {
            let mut all = BTreeSet::new();
            one.move_to(&mut all);
            two.move_to(&mut all);
            let mut text = String::new();
            let message = message(&all).unwrap();
            ZlibDecoder::new(&*message)
                .read_to_string(&mut text)
                .unwrap();
            text
        };
        assert_eq!(told(), r#"["a","b"]"#);
        assert_eq!(told(), "[]");
        two.note(&Text::from("c"));
        assert_eq!(told(), r#"["c"]"#);
    }
}
