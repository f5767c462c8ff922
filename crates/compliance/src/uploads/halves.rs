//! Halves of inventories that wait for the other.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Halves that wait, their bytes, and how long they wait.
const MOST: usize = 1_024;
const MOST_BYTES: usize = 64 << 20;
const WITHIN: Duration = Duration::from_secs(300);

/// An inventory or a signature that waits for its other half.
pub(crate) struct Half {
    pub(crate) body: Bytes,
    pub(crate) packed: bool,
    pub(crate) signs: bool,
    pub(crate) since: Instant,
}

/// Those that wait, by the inventory's name. The oldest give room: a half comes shortly after its
/// other one, so who sends many that never match keeps nobody out.
#[derive(Default)]
pub(crate) struct Halves(HashMap<String, Half>);

impl Halves {
    /// Both halves, the inventory first, if this is the second; else it waits.
    pub(crate) fn pair(&mut self, name: &str, half: Half) -> Option<(Half, Half)> {
        let now = half.since;
        let waits = |half: &Half| now.saturating_duration_since(half.since) < WITHIN;
        self.0.retain(|_, half| waits(half));
        if let Some(other) = self.0.remove(name)
            && other.signs != half.signs
        {
            return Some(match half.signs {
                true => (other, half),
                false => (half, other),
            });
        }
        let mut bytes: usize = self.0.values().map(|half| half.body.len()).sum();
        while self.0.len() >= MOST || bytes + half.body.len() > MOST_BYTES {
            let oldest = self.0.iter().min_by_key(|(_, half)| half.since);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            let gone = self.0.remove(&oldest);
            bytes -= gone.map_or(0, |half| half.body.len());
        }
        self.0.insert(name.to_owned(), half);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes of a half, made so many seconds after the first.
    fn half(first: Instant, second: u64, signs: bool, bytes: usize) -> Half {
        Half {
            body: vec![0; bytes].into(),
            packed: false,
            signs,
            since: first + Duration::from_secs(second),
        }
    }

    #[test]
    fn halves_find_each_other_in_both_orders() {
        let (mut halves, now) = (Halves::default(), Instant::now());
        for signs in [true, false] {
            assert!(halves.pair("a", half(now, 0, signs, 1)).is_none());
            assert!(halves.pair("b", half(now, 0, signs, 1)).is_none());
            let (whole, signature) = halves.pair("a", half(now, 1, !signs, 1)).unwrap();
            assert!(!whole.signs && signature.signs);
            // The same half once more takes the place of the first.
            assert!(halves.pair("b", half(now, 2, signs, 7)).is_none());
            let (whole, signature) = halves.pair("b", half(now, 3, !signs, 1)).unwrap();
            assert_eq!(whole.body.len() + signature.body.len(), 8);
        }
        assert!(halves.0.is_empty());
        assert!(halves.pair("a", half(now, 0, true, 1)).is_none());
        // It waited too long.
        assert!(halves.pair("a", half(now, 300, false, 1)).is_none());
    }

    #[test]
    fn the_oldest_give_room_to_the_newest() {
        let (mut halves, now) = (Halves::default(), Instant::now());
        assert!(halves.pair("first", half(now, 0, true, 1)).is_none());
        for at in 0..5_000 {
            assert!(
                halves
                    .pair(&format!("x{at}"), half(now, 1, true, 1))
                    .is_none()
            );
        }
        assert_eq!(halves.0.len(), MOST);
        assert!(halves.pair("honest", half(now, 2, true, 1)).is_none());
        assert!(halves.pair("x", half(now, 3, true, 1)).is_none());
        assert!(halves.pair("honest", half(now, 4, false, 1)).is_some());
        assert!(halves.pair("first", half(now, 5, false, 1)).is_none());
        // Bytes are bounded as well.
        for at in 0..10 {
            assert!(
                halves
                    .pair(&format!("y{at}"), half(now, 6 + at, true, 16 << 20))
                    .is_none()
            );
            let bytes: usize = halves.0.values().map(|half| half.body.len()).sum();
            assert!(bytes <= MOST_BYTES, "{bytes}");
        }
        assert!(halves.pair("y9", half(now, 16, false, 1)).is_some());
    }
}
