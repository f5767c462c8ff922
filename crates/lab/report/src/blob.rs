//! The binary part of a page: columns of integers and texts, packed into one text.
//!
//! A column holds 32-bit numbers. Each is stored as its difference to a predicted
//! value, folded so that small differences of both signs are small numbers, plus
//! one; 0 says that there is no value. The four bytes of the numbers are stored as
//! four planes, which deflates far better than numbers side by side.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// Largest number of a column.
pub(crate) const VALUE_MAX: u32 = i32::MAX as u32 - 1;

/// Where a column lies in the blob, and how its numbers become quantities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Column {
    /// Offset of the first byte.
    pub(crate) at: usize,
    /// How many numbers.
    pub(crate) n: usize,
    /// How each number is predicted.
    pub(crate) coding: Coding,
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
}

impl Blob {
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
        let nearest = |row: usize| left.iter().rev().find_map(|column| column[row]);
        let by_left = planes(values, |row, before| nearest(row).unwrap_or(before));
        let plain = planes(values, plain);
        self.push_best(
            &[(Coding::Plain, plain), (Coding::Left, by_left)],
            values.len(),
        )
    }

    /// Adds a text.
    pub(crate) fn push_text(&mut self, text: &str) -> Text {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        Text {
            at,
            bytes: text.len(),
        }
    }

    /// Everything added so far, deflated, in base64.
    pub(crate) fn finish(&self) -> String {
        STANDARD.encode(deflate(&self.bytes, Compression::best()))
    }

    fn push_best(&mut self, ways: &[(Coding, Vec<u8>)], n: usize) -> Column {
        let at = self.bytes.len();
        let best = ways
            .iter()
            .min_by_key(|(_, bytes)| deflate(bytes, Compression::fast()).len());
        let mut column = Column {
            at,
            n,
            coding: Coding::Plain,
        };
        if let Some((coding, bytes)) = best {
            column.coding = *coding;
            self.bytes.extend_from_slice(bytes);
        }
        column
    }
}

/// How many bytes a text takes in a page.
pub(crate) fn packed_len(text: &str) -> usize {
    deflate(text.as_bytes(), Compression::best())
        .len()
        .div_ceil(3)
        * 4
}

fn plain(_row: usize, _before: u32) -> u32 {
    0
}

fn above(values: &[Option<u32>]) -> (Coding, Vec<u8>) {
    (Coding::Above, planes(values, |_, before| before))
}

/// Folded differences to `predict(row, the value before)`, as four planes of bytes.
fn planes(values: &[Option<u32>], predict: impl Fn(usize, u32) -> u32) -> Vec<u8> {
    let n = values.len();
    let mut bytes = vec![0; n * 4];
    let mut before = 0;
    for (row, value) in values.iter().enumerate() {
        let Some(value) = *value else { continue };
        let folded = fold(i64::from(value) - i64::from(predict(row, before)));
        for (plane, byte) in folded.to_le_bytes().into_iter().enumerate() {
            bytes[plane * n + row] = byte;
        }
        before = value;
    }
    bytes
}

/// 0, -1, 1, -2, ... become 1, 2, 3, 4, ...
fn fold(difference: i64) -> u32 {
    debug_assert!(difference.abs() <= i64::from(VALUE_MAX));
    ((difference << 1) ^ (difference >> 63)) as u32 + 1
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

    use super::*;

    #[test]
    fn small_differences_of_both_signs_fold_to_small_numbers() {
        let folded: Vec<u32> = [0, -1, 1, -2, 2].into_iter().map(fold).collect();
        assert_eq!(folded, [1, 2, 3, 4, 5]);
        assert_eq!(fold(i64::from(VALUE_MAX)), u32::MAX - 2);
    }

    #[test]
    fn planes_hold_low_bytes_first_and_zero_for_none() {
        assert_eq!(
            planes(&[Some(0), None, Some(300)], plain),
            [1, 0, 89, 0, 0, 2, 0, 0, 0, 0, 0, 0]
        );
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
        assert_eq!((column.at, column.coding), (8000, Coding::Left));
    }

    #[test]
    fn the_finished_text_inflates_to_what_was_added() {
        let mut blob = Blob::default();
        blob.push_text("first");
        assert_eq!(blob.push_text("sécond"), Text { at: 5, bytes: 7 });
        let packed = STANDARD.decode(blob.finish()).unwrap();
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "firstsécond");
    }
}
