//! Unpacking what was uploaded, within a bound.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use rawzip::{CompressionMethod, ZipArchive};
use thiserror::Error;

use super::run_info::Packing;

/// Why an upload could not be unpacked.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// It is longer than the limit.
    #[error("unpacking a report: it is longer than {limit} bytes; it is refused as a bomb")]
    TooLong {
        /// Bytes that are unpacked at most.
        limit: usize,
    },
    /// It is cut off or damaged.
    #[error("unpacking a report as {packing}: {source}; expected a whole file, send it again")]
    Damaged {
        /// What its name says it is.
        packing: &'static str,
        /// What is wrong with it.
        source: io::Error,
    },
    /// It is not an archive of one file.
    #[error(
        "unpacking a report as zip: {problem}; expected an archive of one stored or deflated file"
    )]
    Archive {
        /// What is wrong with it.
        problem: String,
    },
}

/// Unpacks a whole upload. What is not packed is not copied.
///
/// # Errors
/// More than `limit` bytes come out, the data is damaged or cut off, or a zip archive holds
/// anything but one file.
pub fn unpack(packed: &[u8], packing: Packing, limit: usize) -> Result<Cow<'_, [u8]>, UnpackError> {
    match packing {
        Packing::Plain if packed.len() > limit => Err(UnpackError::TooLong { limit }),
        Packing::Plain => Ok(Cow::Borrowed(packed)),
        Packing::Gzip => {
            let unpacked = bounded(MultiGzDecoder::new(packed), packed.len(), limit, "gzip")?;
            Ok(Cow::Owned(unpacked))
        }
        Packing::Zip => unzip(packed, limit).map(Cow::Owned),
    }
}

fn unzip(packed: &[u8], limit: usize) -> Result<Vec<u8>, UnpackError> {
    let archive = ZipArchive::from_slice(packed).map_err(archive_error)?;
    let mut entries = archive.entries();
    let Some(entry) = entries.next_entry().map_err(archive_error)? else {
        return Err(archive_error("it is empty"));
    };
    let method = entry.compression_method();
    let place = entry.wayfinder();
    if entries.next_entry().map_err(archive_error)?.is_some() {
        return Err(archive_error("it holds several files"));
    }
    let entry = archive.get_entry(place).map_err(archive_error)?;
    let data = entry.data();
    match method {
        CompressionMethod::STORE => bounded(entry.verifying_reader(data), data.len(), limit, "zip"),
        CompressionMethod::DEFLATE => {
            let reader = entry.verifying_reader(DeflateDecoder::new(data));
            bounded(reader, data.len(), limit, "zip")
        }
        method => Err(archive_error(format_args!("it is packed by {method:?}"))),
    }
}

fn archive_error(problem: impl ToString) -> UnpackError {
    let problem = problem.to_string();
    UnpackError::Archive { problem }
}

fn bounded(
    reader: impl Read,
    packed: usize,
    limit: usize,
    packing: &'static str,
) -> Result<Vec<u8>, UnpackError> {
    // Run logs shrink to a sixth or less.
    let mut unpacked = Vec::with_capacity(packed.saturating_mul(6).min(limit));
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    reader
        .take(most)
        .read_to_end(&mut unpacked)
        .map_err(|source| UnpackError::Damaged { packing, source })?;
    if unpacked.len() > limit {
        return Err(UnpackError::TooLong { limit });
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::{Packing, UnpackError, unpack};

    const PLAIN: &[u8] = include_bytes!("../../tests/data/rudder/normal.log");
    const GZIP: &[u8] = include_bytes!("../../tests/data/rudder/normal.log.gz");
    const ZIP: &[u8] = include_bytes!("../../tests/data/rudder/normal.log.zip");
    const FORMS: [(&[u8], Packing); 3] = [
        (PLAIN, Packing::Plain),
        (GZIP, Packing::Gzip),
        (ZIP, Packing::Zip),
    ];

    #[test]
    fn every_form_of_the_vector_gives_the_same() {
        for (packed, packing) in FORMS {
            assert_eq!(&*unpack(packed, packing, 1 << 20).unwrap(), PLAIN);
            assert_eq!(&*unpack(packed, packing, PLAIN.len()).unwrap(), PLAIN);
            let error = unpack(packed, packing, PLAIN.len() - 1).unwrap_err();
            assert!(matches!(error, UnpackError::TooLong { .. }), "{error}");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..64 {
            encoder.write_all(&[0; 1 << 20]).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 100_000);
        let error = unpack(&bomb, Packing::Gzip, 1 << 20).unwrap_err();
        assert!(matches!(error, UnpackError::TooLong { .. }));
    }

    #[test]
    fn damage_is_found() {
        for (packed, packing) in [(GZIP, Packing::Gzip), (ZIP, Packing::Zip)] {
            for length in [0, 1, 10, packed.len() / 2, packed.len() - 1] {
                assert!(unpack(&packed[..length], packing, 1 << 20).is_err());
            }
            for at in (0..packed.len()).step_by(7) {
                let mut damaged = packed.to_vec();
                damaged[at] ^= 0x10;
                // Names and dates are not covered by a checksum; content is.
                if let Ok(unpacked) = unpack(&damaged, packing, 1 << 20) {
                    assert_eq!(&*unpacked, PLAIN, "{at}");
                }
            }
        }
        assert!(unpack(PLAIN, Packing::Zip, 1 << 20).is_err());
    }
}
