//! Functions of Go programs: their runtime needs a table of them, so it is there in stripped ones too.

use super::symbols::shown;

/// The first bytes of the table since Go 1.18, and since 1.20 (Go's debug/gosym/pclntab.go); both have
/// the same form.
const MARKS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Most functions of a program.
const MOST: usize = 2_000_000;

/// Functions as a table of 64-bit programs has them (section `.gopclntab`): where each begins, how
/// long it is, and its name. `text` is where the program's code begins. Nothing of a table of another
/// form.
pub(super) fn functions(table: &[u8], text: u64) -> Vec<(u64, u64, String)> {
    read(table, text).unwrap_or_default()
}

fn read(table: &[u8], text: u64) -> Option<Vec<(u64, u64, String)>> {
    // Mark, two zeros, the least instruction, and the size of a pointer.
    if !MARKS.contains(&word32(table, 0)?) || table.get(4..8)? != [0, 0, table[6], 8] {
        return None;
    }
    let word = |number: usize| {
        let bytes = table.get(8 + 8 * number..)?.get(..8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let count = usize::try_from(word(0)?).ok()?.min(MOST);
    // Newer linkers leave it to the program's own header.
    let begins = Some(word(2)?).filter(|text| *text > 0).unwrap_or(text);
    let names = table.get(usize::try_from(word(3)?).ok()?..)?;
    let places = table.get(usize::try_from(word(7)?).ok()?..)?;
    let mut functions = Vec::new();
    for number in 0..count {
        let (from, to) = (word32(places, 8 * number)?, word32(places, 8 * number + 8)?);
        let about = usize::try_from(word32(places, 8 * number + 4)?).ok()?;
        let name = usize::try_from(word32(places, about.checked_add(4)?)?).ok()?;
        let name = names.get(name..)?.split(|byte| *byte == 0).next()?;
        let name = shown(&String::from_utf8_lossy(name));
        functions.push((
            begins + u64::from(from),
            u64::from(to.saturating_sub(from)),
            name,
        ));
    }
    Some(functions)
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two functions of 16 and 32 bytes.
    fn table(text: u64) -> Vec<u8> {
        let names = b"main.main\0main.(*Shop).sell\0";
        let names_at = 8 + 8 * 8;
        let places_at = names_at + names.len();
        let mut bytes = 0xffff_fff1_u32.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        for word in [2, 0, text, names_at as u64, 0, 0, 0, places_at as u64] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(names);
        // Where each begins and where more is told of it, and where the last one ends.
        for word in [0_u32, 20, 16, 28, 48] {
            bytes.extend(word.to_le_bytes());
        }
        // Of each where it begins once more, and its name.
        for word in [0_u32, 0, 16, 10] {
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn functions_have_their_names_and_lengths() {
        let expected = |text| {
            vec![
                (text, 16, "main.main".to_owned()),
                (text + 16, 32, "main.(*Shop).sell".to_owned()),
            ]
        };
        assert_eq!(functions(&table(0x40_1000), 7), expected(0x40_1000));
        assert_eq!(functions(&table(0), 0x50_0000), expected(0x50_0000));
        let mut other = table(0);
        other[0] = 0xfb;
        assert_eq!(functions(&other, 0), []);
        assert_eq!(functions(b"", 0), []);
    }

    proptest! {
        #[test]
        fn nothing_panics(at in 0usize..200, byte in any::<u8>(), length in 0usize..200) {
            let mut bytes = table(0x1000);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(length);
            functions(&bytes, u64::from(byte) << 32);
        }
    }
}
