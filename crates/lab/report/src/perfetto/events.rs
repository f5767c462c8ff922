//! Trace events, one after the other.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::ReportError;

/// Writes events as a JSON object with the list `traceEvents`.
pub(super) struct Events<W: Write> {
    out: W,
    first: bool,
}

impl<W: Write> Events<W> {
    pub(super) fn begin(mut out: W) -> Result<Self, ReportError> {
        let head = out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        head.map_err(ReportError::Trace)?;
        Ok(Self { out, first: true })
    }

    pub(super) fn end(mut self) -> Result<(), ReportError> {
        let tail = self.out.write_all(b"\n]}\n");
        tail.and_then(|()| self.out.flush())
            .map_err(ReportError::Trace)
    }

    /// Names the place of a process; places are shown in the order of their numbers.
    pub(super) fn process(&mut self, pid: u64, name: &str) -> Result<(), ReportError> {
        self.write(
            &json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}),
        )?;
        let order = json!({"sort_index": pid});
        self.write(&json!({"ph": "M", "pid": pid, "name": "process_sort_index", "args": order}))
    }

    /// Names a track.
    pub(super) fn thread(&mut self, pid: u64, tid: u64, name: &str) -> Result<(), ReportError> {
        let about = json!({"name": name});
        self.write(
            &json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": about}),
        )?;
        let order = json!({"sort_index": tid});
        self.write(
            &json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": order}),
        )
    }

    /// Something that began at `at` and took `length`, in seconds.
    pub(super) fn slice(
        &mut self,
        (pid, tid): (u64, u64),
        name: &str,
        at: f64,
        length: f64,
        about: Value,
    ) -> Result<(), ReportError> {
        let (ts, dur) = (micros(at), micros(length.max(0.0)));
        self.write(&json!({
            "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": about,
        }))
    }

    /// Something that happened at `at`, in seconds.
    pub(super) fn moment(
        &mut self,
        pid: u64,
        name: &str,
        at: f64,
        about: Value,
    ) -> Result<(), ReportError> {
        self.write(&json!({
            "ph": "i", "s": "p", "pid": pid, "tid": 0, "name": name, "ts": micros(at), "args": about,
        }))
    }

    /// Numbers by name, from `at` on, in seconds.
    pub(super) fn counter(
        &mut self,
        pid: u64,
        name: &str,
        at: f64,
        values: Value,
    ) -> Result<(), ReportError> {
        self.write(&json!({"ph": "C", "pid": pid, "name": name, "ts": micros(at), "args": values}))
    }

    fn write(&mut self, event: &Value) -> Result<(), ReportError> {
        let between: &[u8] = if self.first { b"" } else { b",\n" };
        self.first = false;
        let wrote = self.out.write_all(between);
        let wrote = wrote
            .and_then(|()| serde_json::to_writer(&mut self.out, event).map_err(io::Error::from));
        wrote.map_err(ReportError::Trace)
    }
}

/// Microseconds, to the nanosecond.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}
