//! The Huffman code of RFC 7541, appendix B.

use super::Unreadable;

/// Bits of each byte's code; the last one is the code of the end (EOS). The code is
/// canonical: of one length, codes follow one another as their bytes do, and shorter ones come
/// first, so that the lengths say all.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Bits of the shortest code.
const SHORTEST: usize = 5;
/// Bits of the longest.
const LONGEST: usize = 30;
/// The end, which no text may contain (RFC 7541 section 5.2).
const END: u16 = 256;

/// Bits by which a code is looked up at once; most bytes of heads have no longer one.
const QUICK: usize = 8;

static CODES: Codes = Codes::new();

struct Codes {
    /// In the order of their codes.
    symbols: [u16; LENGTHS.len()],
    /// By length: the first code behind those of this length and of shorter ones, as the
    /// upper bits of 32.
    ends: [u64; LONGEST + 1],
    /// By length: what to subtract from a code to find it among the symbols.
    shifts: [u32; LONGEST + 1],
    /// By the next eight bits: the byte whose code they begin with, and its length; 0: it is
    /// longer.
    quick: [(u8, u8); 1 << QUICK],
}

impl Codes {
    const fn new() -> Self {
        let mut codes = Self {
            symbols: [0; LENGTHS.len()],
            ends: [0; LONGEST + 1],
            shifts: [0; LONGEST + 1],
            quick: [(0, 0); 1 << QUICK],
        };
        let (mut code, mut at, mut length) = (0_u32, 0_usize, 1_usize);
        while length <= LONGEST {
            code <<= 1;
            codes.shifts[length] = code.wrapping_sub(at as u32);
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as usize == length {
                    codes.symbols[at] = symbol as u16;
                    let mut behind = 0;
                    while length <= QUICK && behind < 1 << (QUICK - length) {
                        let bits = (code as usize) << (QUICK - length) | behind;
                        codes.quick[bits] = (symbol as u8, length as u8);
                        behind += 1;
                    }
                    at += 1;
                    code += 1;
                }
                symbol += 1;
            }
            codes.ends[length] = (code as u64) << (32 - length);
            length += 1;
        }
        codes
    }
}

/// Adds the text that `bytes` stand for.
///
/// # Errors
/// When a code is broken off, or the padding is no beginning of the end's code or longer than
/// seven bits (section 5.2).
pub(super) fn decode(bytes: &[u8], text: &mut Vec<u8>) -> Result<(), Unreadable> {
    let mut bytes = bytes.iter();
    let (mut bits, mut count) = (0_u64, 0_usize);
    loop {
        while count < 32
            && let Some(&byte) = bytes.next()
        {
            bits = bits << 8 | u64::from(byte);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        // The next 32 bits, with ones behind the last.
        let window = match count.checked_sub(32) {
            Some(later) => bits >> later & 0xffff_ffff,
            None => (bits << (32 - count) | ((1 << (32 - count)) - 1)) & 0xffff_ffff,
        };
        let (symbol, length) = CODES.quick[(window >> (32 - QUICK)) as usize];
        if length > 0 && usize::from(length) <= count {
            text.push(symbol);
            count -= usize::from(length);
            continue;
        }
        let mut length = SHORTEST;
        while length < LONGEST && window >= CODES.ends[length] {
            length += 1;
        }
        if length > count {
            let ones = (1 << count) - 1;
            return match count < 8 && bits & ones == ones {
                true => Ok(()),
                false => Err(Unreadable),
            };
        }
        let code = (window >> (32 - length)) as u32;
        let place = code.wrapping_sub(CODES.shifts[length]) as usize;
        match CODES.symbols.get(place) {
            Some(&symbol) if symbol != END => text.push(symbol as u8),
            _ => return Err(Unreadable),
        }
        count -= length;
    }
}

/// The code of a text, for tests.
#[cfg(test)]
pub(super) fn encode(text: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    let (mut bits, mut count) = (0_u64, 0);
    for &byte in text {
        let length = usize::from(LENGTHS[usize::from(byte)]);
        let place = CODES.symbols.iter().position(|it| *it == u16::from(byte));
        let code = CODES.shifts[length].wrapping_add(place.unwrap() as u32);
        bits = bits << length | u64::from(code);
        count += length;
        while count >= 8 {
            count -= 8;
            coded.push((bits >> count) as u8);
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        coded.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
    coded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let mut text = Vec::new();
        decode(bytes, &mut text).map(|()| text)
    }

    /// RFC 7541, appendices C.4 and C.6.
    #[test]
    fn the_standard_s_examples() {
        let examples: [(&[u8], &str); 5] = [
            (b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", "www.example.com"),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
            (b"\x64\x02", "302"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
        ];
        for (bytes, text) in examples {
            assert_eq!(decoded(bytes), Ok(text.as_bytes().to_vec()));
            assert_eq!(encode(text.as_bytes()), bytes);
        }
    }

    #[test]
    fn the_code_is_complete() {
        assert_eq!(CODES.ends[LONGEST], 1 << 32);
        assert_eq!(CODES.symbols[LENGTHS.len() - 1], END);
    }

    #[test]
    fn wrong_ends_are_refused() {
        // Eight bits of padding, padding of zeros, the end's own code.
        for bytes in [&b"\xff"[..], b"\x00", b"\xff\xff\xff\xff", b"\x64\x02\xff"] {
            assert_eq!(decoded(bytes), Err(Unreadable), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_found_again(text: Vec<u8>) {
            prop_assert_eq!(decoded(&encode(&text)), Ok(text));
        }

        #[test]
        fn nothing_panics(bytes: Vec<u8>) {
            let _ = decoded(&bytes);
        }
    }
}
