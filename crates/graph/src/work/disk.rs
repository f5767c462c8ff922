//! A file that requests read and write.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::WorkError;
use super::stop::Stop;

/// Bytes of the file: reads and writes go round in it, so it never grows.
const FILE_BYTES: u64 = 256 << 10;
/// Most bytes of one call into the kernel.
pub(crate) const CHUNK: usize = 64 << 10;

/// The file of an instance. It has no name: whatever ends the process, nothing is left.
///
/// Reads are answered from the page cache, as those of most services; what is written is
/// on the disk when it was synced.
#[derive(Debug)]
pub(crate) struct DiskFile {
    folder: PathBuf,
    /// Made as soon as the folder can be written.
    file: OnceLock<File>,
    /// Where the next read or write begins; reduced to a place in the file by its user.
    next: AtomicU64,
}

impl DiskFile {
    /// Makes it in a folder, or later if that cannot be written now.
    pub(crate) fn new(folder: &Path) -> Self {
        let file = Self {
            folder: folder.to_owned(),
            file: OnceLock::new(),
            next: AtomicU64::new(0),
        };
        // Whoever uses it tries again, and says why it fails.
        let _ = file.file();
        file
    }

    fn file(&self) -> Result<&File, WorkError> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = filled(&self.folder)?;
        // Another worker may have been first.
        Ok(self.file.get_or_init(|| file))
    }

    /// Reads so many bytes into `buffer` (of [`CHUNK`] bytes), again and again; how many
    /// were read.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn read(
        &self,
        bytes: u64,
        buffer: &mut [u8],
        stop: &Stop,
    ) -> Result<u64, WorkError> {
        let file = self.file()?;
        self.each(bytes, buffer, stop, |part, at| {
            file.read_exact_at(part, at)
                .map_err(WorkError::system("read from the disk"))
        })
    }

    /// Writes so many bytes, and waits until they are on the disk if they shall be; how
    /// many were written.
    ///
    /// # Errors
    /// Those of the disk, such as that it is full.
    pub(crate) fn write(
        &self,
        bytes: u64,
        sync: bool,
        buffer: &mut [u8],
        stop: &Stop,
    ) -> Result<u64, WorkError> {
        let file = self.file()?;
        let written = self.each(bytes, buffer, stop, |part, at| {
            file.write_all_at(part, at)
                .map_err(WorkError::system("write to the disk"))
        })?;
        if sync {
            file.sync_data().map_err(WorkError::system(
                "wait until what was written is on the disk",
            ))?;
        }
        Ok(written)
    }

    /// Cuts so many bytes into parts that each have a place in the file.
    fn each(
        &self,
        bytes: u64,
        buffer: &mut [u8],
        stop: &Stop,
        mut act: impl FnMut(&mut [u8], u64) -> Result<(), WorkError>,
    ) -> Result<u64, WorkError> {
        let mut at = self.next.fetch_add(bytes, Ordering::Relaxed) % FILE_BYTES;
        let mut left = bytes;
        while left > 0 && !stop.is_requested() {
            let most = left.min(FILE_BYTES - at);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let count = most.min(buffer.len());
            let Some(part) = buffer.get_mut(..count).filter(|part| !part.is_empty()) else {
                break;
            };
            act(part, at)?;
            at = (at + count as u64) % FILE_BYTES;
            left -= count as u64;
        }
        Ok(bytes - left)
    }
}

/// A file with something to read.
fn filled(folder: &Path) -> Result<File, WorkError> {
    let file =
        tempfile::tempfile_in(folder).map_err(WorkError::system("make a file for disk work"))?;
    // Bytes that neither compress nor fold: some file systems do both.
    let mut random = stats::SplitMix::new(1);
    let words = (0..FILE_BYTES / 8).flat_map(|_| random.bits().to_ne_bytes());
    let bytes: Vec<u8> = words.collect();
    file.write_all_at(&bytes, 0)
        .map_err(WorkError::system("fill a file for disk work"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn all_bytes_are_done_and_the_file_stays_as_large(
            sizes in proptest::collection::vec((0_u64..600_000, any::<bool>()), 1..6)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = DiskFile::new(folder.path());
            let mut buffer = vec![0; CHUNK];
            let stop = Stop::default();
            for (bytes, write) in sizes {
                let done = match write {
                    true => file.write(bytes, false, &mut buffer, &stop).unwrap(),
                    false => file.read(bytes, &mut buffer, &stop).unwrap(),
                };
                prop_assert_eq!(done, bytes);
            }
            prop_assert_eq!(file.file().unwrap().metadata().unwrap().len(), FILE_BYTES);
        }
    }

    #[test]
    fn it_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = DiskFile::new(folder.path());
        let mut buffer = vec![7; CHUNK];
        file.write(10, true, &mut buffer, &Stop::default()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        file.next.store(0, Ordering::Relaxed);
        let mut buffer = vec![0; CHUNK];
        file.read(11, &mut buffer, &Stop::default()).unwrap();
        assert_eq!(buffer[..10], [7; 10]);
        assert_ne!(buffer[10], 7, "what was not written is as it was filled");
    }

    #[test]
    fn it_is_made_when_there_is_a_place_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("later");
        let file = DiskFile::new(&place);
        let (mut buffer, stop) = (vec![0; CHUNK], Stop::default());
        let error = file.read(10, &mut buffer, &stop).unwrap_err();
        assert_eq!(error.cause(), "system");
        assert!(error.to_string().contains("disk work"), "{error}");
        std::fs::create_dir(&place).unwrap();
        assert_eq!(file.read(10, &mut buffer, &stop).unwrap(), 10);
    }
}
