//! Ids of entities. Most systems name them by random digits, which nothing compresses: such ids are bytes.

use std::collections::HashMap;

use serde::Serialize;

use crate::ReportError;
use crate::blob::{Blob, Column, Text};

/// Where the ids of a table lie in the blob.
#[derive(Debug, Serialize)]
pub(crate) struct Ids {
    hex: Hex,
    /// The rows whose ids are texts.
    rows: Column,
    /// These ids as a JSON list.
    texts: Text,
}

/// Ids of one form, in the order of their rows.
#[derive(Debug, Serialize)]
struct Hex {
    /// Where the first bytes of all of them lie, then the second ones, and so on.
    at: usize,
    n: usize,
    /// How many hexadecimal digits stand before, between and behind dashes.
    form: Vec<u8>,
}

/// Packs ids in the order of their rows.
pub(crate) fn pack<'a>(
    ids: impl Iterator<Item = &'a str> + Clone,
    blob: &mut Blob,
) -> Result<Ids, ReportError> {
    let mut forms: HashMap<Vec<u8>, usize> = HashMap::new();
    for form in ids.clone().filter_map(form) {
        *forms.entry(form).or_default() += 1;
    }
    // Of equally frequent forms always the same one: a report is a pure function of its run.
    let most = forms
        .into_iter()
        .max_by(|(a, n), (b, m)| (n, a).cmp(&(m, b)));
    let own = most.map(|(form, _)| form).unwrap_or_default();
    let (mut hex, mut rows, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (row, id) in ids.enumerate() {
        match form(id) {
            Some(form) if form == own => hex.push(id),
            _ => {
                rows.push(Some(row as u32));
                texts.push(id);
            }
        }
    }
    let mut planes = vec![0; width(&own) * hex.len()];
    for (row, id) in hex.iter().enumerate() {
        for (plane, byte) in bytes_of(id).enumerate() {
            planes[plane * hex.len() + row] = byte;
        }
    }
    let texts = serde_json::to_string(&texts).map_err(ReportError::Encode)?;
    Ok(Ids {
        hex: Hex {
            at: blob.push_bytes(&planes),
            n: hex.len(),
            form: own,
        },
        rows: blob.push_column(&rows),
        texts: blob.push_text(&texts),
    })
}

/// The bytes of an id that has a form.
fn bytes_of(id: &str) -> impl Iterator<Item = u8> {
    let mut digits = id.bytes().filter_map(|byte| char::from(byte).to_digit(16));
    std::iter::from_fn(move || {
        let (high, low) = (digits.next()?, digits.next()?);
        Some((high << 4 | low) as u8)
    })
}

/// Adds the bytes of an id of this form, or as many zeros; tells whether it is of this form.
pub(crate) fn push_bytes(id: &str, own: &[u8], bytes: &mut Vec<u8>) -> bool {
    let is = is_of(id, own);
    match is {
        true => bytes.extend(bytes_of(id)),
        false => bytes.resize(bytes.len() + width(own), 0),
    }
    is
}

/// Bytes of an id of this form.
fn width(form: &[u8]) -> usize {
    form.iter()
        .map(|digits| usize::from(*digits))
        .sum::<usize>()
        / 2
}

/// Is the id of this form? Without a form none is.
fn is_of(id: &str, own: &[u8]) -> bool {
    let mut parts = id.split('-');
    let fits = |digits: &u8| {
        parts
            .next()
            .is_some_and(|part| part.len() == usize::from(*digits) && part.bytes().all(is_digit))
    };
    !own.is_empty() && own.iter().all(fits) && parts.next().is_none()
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The numbers of digits between dashes, of an id that can be told by bytes: lower-case hexadecimal digits,
/// an even number of them.
pub(crate) fn form(id: &str) -> Option<Vec<u8>> {
    let mut form = Vec::with_capacity(5);
    let mut sum = 0;
    for part in id.split('-') {
        let digits = u8::try_from(part.len()).ok().filter(|digits| *digits > 0)?;
        if !part.bytes().all(is_digit) {
            return None;
        }
        form.push(digits);
        sum += part.len();
    }
    (sum % 2 == 0).then_some(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_back_as_it_was_has_a_form() {
        assert_eq!(form("0a1b-2c"), Some(vec![4, 2]));
        assert_eq!(form("0a1"), None, "half a byte");
        for id in ["", "0A", "0a-", "-0a", "0a--1b", "task-1", "0a 1b"] {
            assert_eq!(form(id), None, "{id}");
        }
    }

    #[test]
    fn the_most_frequent_form_is_bytes_and_others_are_texts() {
        let mut blob = Blob::default();
        let ids = ["ab", "12-34", "x", "ff-00"];
        let packed = pack(ids.into_iter(), &mut blob).unwrap();
        assert_eq!((packed.hex.n, packed.hex.form.as_slice()), (2, &[2, 2][..]));
        assert_eq!(&blob.bytes()[..4], [0x12, 0xff, 0x34, 0x00]);
        assert_eq!(packed.rows.n, 2);
        let texts = &blob.bytes()[packed.texts.at..][..packed.texts.bytes];
        assert_eq!(texts, br#"["ab","x"]"#);
    }
}
