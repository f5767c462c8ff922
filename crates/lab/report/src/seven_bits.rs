//! Bytes as text of a page: seven bits a character, which takes an eighth less room than base64 does.
//!
//! A page in UTF-8 holds every character below 128 as a byte, but for three: NUL and a carriage return
//! would be read as others, and `<` could end the element. These stand as characters of two bytes.

/// What is written instead of a character that a page cannot hold.
const INSTEAD: [(u8, char); 3] = [(0, '\u{a1}'), (b'\r', '\u{a2}'), (b'<', '\u{a3}')];

/// The bytes as text: bits of the first byte first, the lowest first.
pub(crate) fn written(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() / 7 * 8 + bytes.len() / 32 + 8);
    let (mut held, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        held |= u32::from(*byte) << bits;
        bits += 8;
        while bits >= 7 {
            text.push(character((held & 127) as u8));
            held >>= 7;
            bits -= 7;
        }
    }
    if bits > 0 {
        text.push(character((held & 127) as u8));
    }
    text
}

fn character(seven: u8) -> char {
    let instead = INSTEAD.iter().find(|(not, _)| *not == seven);
    instead.map_or(char::from(seven), |(_, instead)| *instead)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes that were written.
    pub(crate) fn read(text: &str) -> Vec<u8> {
        let (mut held, mut bits, mut bytes) = (0_u32, 0_u32, Vec::new());
        for one in text.chars() {
            let instead = INSTEAD.iter().find(|(_, instead)| *instead == one);
            let seven = instead.map_or(one as u32, |(not, _)| u32::from(*not));
            held |= seven << bits;
            bits += 7;
            if bits >= 8 {
                bytes.push(held as u8);
                held >>= 8;
                bits -= 8;
            }
        }
        bytes
    }

    #[test]
    fn the_lowest_bits_come_first() {
        assert_eq!(written(&[0b1000_0001]), "\u{1}\u{1}");
        assert_eq!(written(b"<\r"), "\u{a3}\u{1a}\u{a1}");
        assert_eq!(written(&[]), "");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_can_stand_in_a_page(bytes: Vec<u8>) {
            let text = written(&bytes);
            prop_assert!(!text.contains(['\0', '\r', '<']));
            prop_assert_eq!(read(&text), bytes);
        }
    }
}
