//! Integers (RFC 7541 section 5.1).

use super::Unreadable;

/// Reads one of at most five bytes; more would be longer than any block.
#[inline]
pub(super) fn read(rest: &mut &[u8], prefix: u32) -> Result<usize, Unreadable> {
    let (&first, mut behind) = rest.split_first().ok_or(Unreadable)?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        for shift in [0, 7, 14, 21, 28] {
            let (&byte, further) = behind.split_first().ok_or(Unreadable)?;
            if shift == 28 {
                return Err(Unreadable);
            }
            behind = further;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = behind;
    Ok(value)
}

/// Writes one behind the bits of `first` before its prefix.
#[inline]
pub(super) fn write(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}
