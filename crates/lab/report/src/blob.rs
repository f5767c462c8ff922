//! The binary part of a page: columns of integers and texts, packed into one text.
//!
//! A column holds 32-bit numbers. Each is stored as its difference to a predicted
//! value, folded so that small differences of both signs are small numbers, plus
//! one; 0 says that there is no value. The bytes of the numbers are stored as up to
//! four planes, which deflates far better than numbers side by side; planes at the top
//! that are all zero are left out.
//!
//! A column of a large table may be coarse: a difference keeps its highest bits. What is
//! stored is then `2 × code`, plus one for a negative one, plus one; `code` is the size
//! of the difference below `2^(digits + 1)`, and beyond that counts on like a
//! floating-point number, whose exponent says how many bits were left out.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// Largest number of a column.
pub(crate) const VALUE_MAX: u32 = i32::MAX as u32 - 1;

/// From so many bytes on a blob is deflated with less effort.
const LARGE: usize = 16 << 20;

/// Where a column lies in the blob, and how its numbers become quantities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Column {
    /// Offset of the first byte.
    pub(crate) at: usize,
    /// How many numbers.
    pub(crate) n: usize,
    /// Bytes of each number that are stored.
    pub(crate) planes: usize,
    /// How each number is predicted.
    pub(crate) coding: Coding,
    /// Bits of a difference behind its highest one that are kept; `None`: all.
    pub(crate) digits: Option<u32>,
}

/// How the numbers of a column are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Coding {
    /// By 0.
    Plain,
    /// By the number before it in the same column.
    Above,
    /// By the nearest number in the same row of an earlier column; else as `Above`.
    Left,
}

/// Where a text lies in the blob.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Text {
    /// Offset of the first byte.
    pub(crate) at: usize,
    /// Length in bytes of UTF-8.
    pub(crate) bytes: usize,
}

/// Collects columns and texts.
#[derive(Debug, Default)]
pub(crate) struct Blob {
    bytes: Vec<u8>,
    /// It is soon replaced by another one.
    short_lived: bool,
}

impl Blob {
    /// One that is soon replaced, and takes more room than it must.
    pub(crate) fn short_lived() -> Self {
        Self {
            short_lived: true,
            ..Self::default()
        }
    }

    /// Adds a column, predicted in whichever way deflates best.
    pub(crate) fn push_column(&mut self, values: &[Option<u32>]) -> Column {
        self.push_best(
            &[(Coding::Plain, planes(values, plain)), above(values)],
            values.len(),
        )
    }

    /// Adds a column of a table whose earlier columns are `left`.
    pub(crate) fn push_right_of(
        &mut self,
        left: &[Vec<Option<u32>>],
        values: &[Option<u32>],
    ) -> Column {
        let by_left = planes(values, |row, value, before| {
            fold(value, nearest(left, row).unwrap_or(before))
        });
        let plain = planes(values, plain);
        self.push_best(
            &[(Coding::Plain, plain), (Coding::Left, by_left)],
            values.len(),
        )
    }

    /// Adds a coarse column of a table: a row is predicted by the nearest number in the columns on
    /// its left, else by its anchor.
    pub(crate) fn push_coarse(
        &mut self,
        left: &[Vec<Option<u32>>],
        anchors: &[Option<u32>],
        values: &[Option<u32>],
        digits: u32,
    ) -> Column {
        let stored = |row: usize, value: u32| {
            let predicted = nearest(left, row).or(anchors[row]).unwrap_or(0);
            coarse(i64::from(value) - i64::from(predicted), digits)
        };
        let bytes = planes(values, |row, value, _| stored(row, value));
        let column = self.push_best(&[(Coding::Left, bytes)], values.len());
        Column {
            digits: Some(digits),
            ..column
        }
    }

    /// Adds bytes; tells where.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a text.
    pub(crate) fn push_text(&mut self, text: &str) -> Text {
        Text {
            at: self.push_bytes(text.as_bytes()),
            bytes: text.len(),
        }
    }

    /// Everything added so far, deflated.
    pub(crate) fn finish(&self) -> Vec<u8> {
        // Much is numbers that are as good as random: more effort would not be worth its time.
        let level = match self.bytes.len() {
            _ if self.short_lived => Compression::fast(),
            0..LARGE => Compression::best(),
            _ => Compression::default(),
        };
        deflate(&self.bytes, level)
    }

    fn push_best(&mut self, ways: &[(Coding, Vec<u8>)], n: usize) -> Column {
        let at = self.bytes.len();
        let best = ways
            .iter()
            .min_by_key(|(_, bytes)| deflate(bytes, Compression::fast()).len());
        let mut column = Column {
            at,
            n,
            planes: 0,
            coding: Coding::Plain,
            digits: None,
        };
        if let Some((coding, bytes)) = best {
            column.coding = *coding;
            column.planes = bytes.len().checked_div(n).unwrap_or(0);
            self.bytes.extend_from_slice(bytes);
        }
        column
    }
}

/// How many bytes a text takes in a page.
pub(crate) fn packed_len(text: &str) -> usize {
    deflate(text.as_bytes(), Compression::best())
        .len()
        .div_ceil(7)
        * 8
}

/// How many bytes a coarse column takes at least, deflated; with 31 digits it is as good as whole.
pub(crate) fn coarse_len(left: &[Vec<Option<u32>>], values: &[Option<u32>], digits: u32) -> f64 {
    let mut counts = [[0_u32; 256]; 4];
    for (row, value) in values.iter().enumerate() {
        let stored = value.map_or(0, |value| {
            let predicted = nearest(left, row).unwrap_or(value);
            coarse(i64::from(value) - i64::from(predicted), digits)
        });
        for (counts, byte) in counts.iter_mut().zip(stored.to_le_bytes()) {
            counts[usize::from(byte)] += 1;
        }
    }
    let n = values.len() as f64;
    let bits = |count: &u32| match count {
        0 => 0.0,
        count => f64::from(*count) * (n / f64::from(*count)).log2(),
    };
    counts.iter().flatten().map(bits).sum::<f64>() / 8.0
}

/// The nearest number in a row of earlier columns.
fn nearest(left: &[Vec<Option<u32>>], row: usize) -> Option<u32> {
    left.iter().rev().find_map(|column| column[row])
}

fn plain(_row: usize, value: u32, _before: u32) -> u32 {
    fold(value, 0)
}

fn above(values: &[Option<u32>]) -> (Coding, Vec<u8>) {
    let planes = planes(values, |_, value, before| fold(value, before));
    (Coding::Above, planes)
}

/// What is stored of each value, by its row and the value before it, as planes of bytes.
fn planes(values: &[Option<u32>], stored: impl Fn(usize, u32, u32) -> u32) -> Vec<u8> {
    let n = values.len();
    let mut bytes = vec![0; n * 4];
    let (mut before, mut all) = (0, 0);
    for (row, value) in values.iter().enumerate() {
        let Some(value) = *value else { continue };
        let stored = stored(row, value, before);
        for (plane, byte) in stored.to_le_bytes().into_iter().enumerate() {
            bytes[plane * n + row] = byte;
        }
        before = value;
        all |= stored;
    }
    let used = u32::BITS.div_ceil(8) - all.leading_zeros() / 8;
    bytes.truncate(n * used as usize);
    bytes
}

/// Differences of 0, -1, 1, -2, ... become 1, 2, 3, 4, ...
fn fold(value: u32, predicted: u32) -> u32 {
    let difference = i64::from(value) - i64::from(predicted);
    debug_assert!(difference.abs() <= i64::from(VALUE_MAX));
    ((difference << 1) ^ (difference >> 63)) as u32 + 1
}

/// A difference of which so many bits behind the highest one are kept; the rest is rounded.
fn coarse(difference: i64, digits: u32) -> u32 {
    let size = difference.unsigned_abs();
    let left_out = (u64::BITS - size.leading_zeros()).saturating_sub(digits + 1);
    let rounded = match left_out {
        0 => size,
        bits => (size + (1 << (bits - 1))) >> bits,
    };
    // One that is rounded up to the next power of two has the code of that.
    let code = (u64::from(left_out) << digits) + rounded;
    (2 * code + u64::from(difference < 0)) as u32 + 1
}

fn deflate(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    // Writing to a vector has no error to report.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_differences_of_both_signs_fold_to_small_numbers() {
        let folded = [5, 4, 6, 3, 7].map(|value| fold(value, 5));
        assert_eq!(folded, [1, 2, 3, 4, 5]);
        assert_eq!(fold(VALUE_MAX, 0), u32::MAX - 2);
    }

    #[test]
    fn planes_hold_low_bytes_first_and_zero_for_none() {
        assert_eq!(
            planes(&[Some(0), None, Some(300)], plain),
            [1, 0, 89, 0, 0, 2],
            "two bytes are enough"
        );
        assert!(planes(&[None, None], plain).is_empty());
    }

    /// What is read of a coarse difference.
    fn read(stored: u32, digits: u32) -> i64 {
        let code = i64::from((stored - 1) >> 1);
        let size = match code >> digits {
            0 | 1 => code,
            bits => (code & ((1 << digits) - 1) | 1 << digits) << (bits - 1),
        };
        if (stored - 1) & 1 == 1 { -size } else { size }
    }

    proptest! {
        #[test]
        fn a_coarse_difference_keeps_its_sign_and_its_highest_bits(
            difference in -i64::from(VALUE_MAX)..=i64::from(VALUE_MAX), shift in 0..31_u32, digits in 4..=31_u32,
        ) {
            let difference = difference >> shift;
            let found = read(coarse(difference, digits), digits);
            let most = difference.abs() as f64 / f64::from(2 << digits.min(29));
            prop_assert!((found - difference).abs() as f64 <= most, "{difference} became {found}");
        }
    }

    #[test]
    fn longer_is_never_read_as_shorter() {
        let codes: Vec<u32> = (0..10_000).map(|size| coarse(size, 5)).collect();
        assert!(codes.is_sorted());
        assert_eq!(codes[63], 2 * 63 + 1, "small ones are whole");
    }

    #[test]
    fn a_rising_column_is_predicted_by_the_number_above() {
        let rising: Vec<Option<u32>> = (0..1000).map(|i| Some(i * 1000)).collect();
        let mut blob = Blob::default();
        assert_eq!(blob.push_column(&rising).coding, Coding::Above);
        let scattered: Vec<Option<u32>> = (0..1000_u64)
            .map(|i| Some((i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32))
            .collect();
        let later: Vec<Option<u32>> = scattered.iter().map(|v| v.map(|v| v + 5)).collect();
        blob.push_column(&scattered);
        let column = blob.push_right_of(&[scattered], &later);
        assert_eq!(column.coding, Coding::Left);
        assert_eq!(column.planes, 1);
    }

    #[test]
    fn the_finished_text_inflates_to_what_was_added() {
        let mut blob = Blob::default();
        blob.push_text("first");
        assert_eq!(blob.push_text("sécond"), Text { at: 5, bytes: 7 });
        let packed = blob.finish();
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "firstsécond");
    }
}
