//! Elements of DER (X.690), as certificates are written in them.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Takes an element with that tag; its content.
pub(super) fn content<'a>(rest: &mut &'a [u8], wanted: u8) -> Option<&'a [u8]> {
    let (tag, content) = element(rest)?;
    (tag == wanted).then_some(content)
}

/// Takes an element (X.690 section 8.1) of 65,535 bytes at most; its tag and its content.
pub(super) fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (length, content) = match **rest {
        [_, length @ 0..=0x7f, ref behind @ ..] => (usize::from(length), behind),
        [_, 0x81, length @ 0x80..=0xff, ref behind @ ..] => (usize::from(length), behind),
        [_, 0x82, high @ 1..=0xff, low, ref behind @ ..] => {
            (usize::from(high) << 8 | usize::from(low), behind)
        }
        _ => return None,
    };
    let tag = *rest.first()?;
    let (content, behind) = content.split_at_checked(length)?;
    *rest = behind;
    Some((tag, content))
}
