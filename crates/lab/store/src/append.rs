//! Writing records while the run goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use csv::push_record;

use crate::{Record, RunFolder, StoreError};

const BUFFER_BYTES: usize = 64 << 10;

/// Adds records of one kind to their file.
///
/// At most 64 KiB wait in memory. Call [`Appender::flush`] at the end: an error
/// while dropping cannot be told to anyone.
#[derive(Debug)]
pub struct Appender<R> {
    path: PathBuf,
    out: BufWriter<File>,
    line: String,
    record: PhantomData<fn(&R)>,
}

impl<R: Record> Appender<R> {
    pub(crate) fn open(run: &RunFolder) -> Result<Self, StoreError> {
        let path = run.file(R::FILE);
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let file = open.map_err(StoreError::io("open", &path))?;
        let is_new = file
            .metadata()
            .map_err(StoreError::io("look at", &path))?
            .len()
            == 0;
        let mut line = String::new();
        if let (true, Some(columns)) = (is_new, R::COLUMNS) {
            push_record(&mut line, columns.iter().copied());
        }
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        out.write_all(line.as_bytes())
            .map_err(StoreError::io("write", &path))?;
        Ok(Self {
            path,
            out,
            line,
            record: PhantomData,
        })
    }

    /// Adds one record; it may stay in memory until [`Appender::flush`].
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses, and on numbers that are not finite; the file
    /// then holds only whole records.
    pub fn append(&mut self, record: &R) -> Result<(), StoreError> {
        self.line.clear();
        record
            .push_line(&mut self.line)
            .map_err(|problem| StoreError::Unwritable {
                path: self.path.clone(),
                problem,
            })?;
        self.out
            .write_all(self.line.as_bytes())
            .map_err(StoreError::io("write", &self.path))
    }

    /// Hands everything to the operating system.
    ///
    /// # Errors
    ///
    /// Fails when the disk refuses.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.out
            .flush()
            .map_err(StoreError::io("write", &self.path))
    }
}
