//! What is kept and sent packed, by gzip.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Bytes that come out at most: more than any policy or definitions may have.
const BYTES: u64 = 512 << 20;

/// Packs fast; equal bytes become equal bytes.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    let mut packed = encoder.finish().unwrap_or_default();
    // Policies are held as long as they hold.
    packed.shrink_to_fit();
    packed
}

/// Unpacks what [`pack`] made.
///
/// # Errors
/// It is damaged, or longer than 512 MB.
pub(crate) fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::with_capacity(bytes.len() * 4);
    let taken = MultiGzDecoder::new(bytes)
        .take(BYTES)
        .read_to_end(&mut unpacked)?;
    if taken as u64 == BYTES {
        return Err(io::Error::other("it is longer than 512 MB unpacked"));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};

    #[test]
    fn what_is_packed_is_unpacked_and_damage_is_found() {
        let text = b"what is the same ".repeat(100);
        let packed = pack(&text);
        assert!(packed.len() < text.len() / 4);
        assert_eq!(packed, pack(&text));
        assert_eq!(unpack(&packed).unwrap(), text);
        assert!(unpack(&packed[..packed.len() - 1]).is_err());
        assert_eq!(unpack(&pack(&[])).unwrap(), b"");
    }
}
