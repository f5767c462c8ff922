//! Unpacking zip archives.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive};

use super::archive::{Awaited, Room, UnpackError, clear, folder_within, refused};

/// Longest target of a link.
const LINK_BYTES: u64 = 4096;

pub(super) fn unpack(
    archive: File,
    folder: &Path,
    room: &mut Room,
    given_up: &AtomicBool,
) -> Result<(), UnpackError> {
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(archive, &mut buffer)?;
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry()? {
        let shown = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        let named = entry.file_path().try_normalize();
        let outside = |_| refused(Path::new(&shown), "lies outside of the container");
        let name = named.map_err(outside)?;
        let name = Path::new(name.as_str());
        if entry.is_dir() {
            room.take(0)?;
            folder_within(folder, name)?;
            continue;
        }
        let inside = name.parent().unwrap_or(Path::new(""));
        let Some(last) = name.file_name() else {
            return Err(refused(name, "has no name"));
        };
        let place = folder_within(folder, inside)?.join(last);
        clear(&place)?;
        let packed = archive.get_entry(entry.wayfinder())?;
        let method = entry.compression_method();
        let inner: Box<dyn Read + '_> = match method {
            CompressionMethod::STORE => Box::new(packed.verifying_reader(packed.reader())),
            CompressionMethod::DEFLATE => {
                let inflated = DeflateDecoder::new(packed.reader());
                Box::new(packed.verifying_reader(inflated))
            }
            _ => return Err(refused(name, "is packed in a way that is not known")),
        };
        let mut content = Awaited { inner, given_up };
        if entry.mode().is_symlink() {
            let mut target = String::new();
            content.take(LINK_BYTES).read_to_string(&mut target)?;
            room.take(target.len() as u64)?;
            std::os::unix::fs::symlink(target, &place)?;
            continue;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&place)?;
        let written = io::copy(&mut (&mut content).take(room.left()), &mut file)?;
        // Whether anything is left; at the end this also checks what was read.
        if content.read(&mut [0])? > 0 {
            return Err(room.exceeded());
        }
        room.take(written)?;
        let mode = match entry.mode().permissions() & 0o777 {
            0 => 0o644,
            mode => mode,
        };
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(())
}
