//! One record, one line: how each kind of record is written and read.

use std::fmt::Display;
use std::str::FromStr;

use csv::{Cell, push_record};

use crate::folder::RunFile;
use crate::{EntityCount, Event, LoopTurn, ProbeSample, ProcessSample, SystemProcess};

/// A record that is stored as one line (or one CSV record) of a file.
///
/// Times are finite; [`crate::Appender`] refuses others.
pub trait Record: Sized {
    /// The file that holds records of this kind.
    const FILE: RunFile<'static>;
    /// Names of the columns; `None`: the file is JSON lines and has no header.
    const COLUMNS: Option<&'static [&'static str]>;

    /// Adds the record to `out`, with its line end.
    ///
    /// # Errors
    ///
    /// Says what is wrong with a value that the format cannot hold.
    fn push_line(&self, out: &mut String) -> Result<(), String>;

    /// Reads the record from the fields of its line; JSON lines have one field.
    ///
    /// # Errors
    ///
    /// Says which field is not what its column says.
    fn from_fields(fields: &[Cell]) -> Result<Self, String>;
}

impl Record for Event {
    const FILE: RunFile<'static> = RunFile::Events;
    const COLUMNS: Option<&'static [&'static str]> = None;

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        finite("t_s", self.t_s)?;
        out.push_str(&serde_json::to_string(self).map_err(|error| error.to_string())?);
        out.push('\n');
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        let line = fields.first().map_or("", |field| &field.text);
        serde_json::from_str(line).map_err(|error| format!("not an event: {error}"))
    }
}

impl Record for ProcessSample {
    const FILE: RunFile<'static> = RunFile::Processes;
    const COLUMNS: Option<&'static [&'static str]> =
        Some(&["t_s", "system", "cpu_cores", "rss_bytes", "fds", "threads"]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            finite("t_s", self.t_s)?,
            self.system.clone(),
            finite("cpu_cores", self.cpu_cores)?,
            self.rss_bytes.to_string(),
            self.fds.to_string(),
            self.threads.to_string(),
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            system: fields[1].text.clone(),
            cpu_cores: number::<Self, f64>(fields, 2)?,
            rss_bytes: number::<Self, _>(fields, 3)?,
            fds: number::<Self, _>(fields, 4)?,
            threads: number::<Self, _>(fields, 5)?,
        })
    }
}

impl Record for SystemProcess {
    const FILE: RunFile<'static> = RunFile::SystemProcesses;
    const COLUMNS: Option<&'static [&'static str]> = Some(&[
        "system",
        "pid",
        "parent",
        "command",
        "from_s",
        "to_s",
        "cpu_s",
        "cpu_cores_max",
        "rss_bytes_max",
    ]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            self.system.clone(),
            self.pid.to_string(),
            self.parent.to_string(),
            self.command.clone(),
            finite("from_s", self.from_s)?,
            finite("to_s", self.to_s)?,
            finite("cpu_s", self.cpu_s)?,
            finite("cpu_cores_max", self.cpu_cores_max)?,
            self.rss_bytes_max.to_string(),
        ];
        push_record(out, fields.iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            system: fields[0].text.clone(),
            pid: number::<Self, _>(fields, 1)?,
            parent: number::<Self, _>(fields, 2)?,
            command: fields[3].text.clone(),
            from_s: number::<Self, f64>(fields, 4)?,
            to_s: number::<Self, f64>(fields, 5)?,
            cpu_s: number::<Self, f64>(fields, 6)?,
            cpu_cores_max: number::<Self, f64>(fields, 7)?,
            rss_bytes_max: number::<Self, _>(fields, 8)?,
        })
    }
}

impl Record for EntityCount {
    const FILE: RunFile<'static> = RunFile::Entities;
    const COLUMNS: Option<&'static [&'static str]> = Some(&["t_s", "what", "state", "count"]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let (t_s, count) = (finite("t_s", self.t_s)?, self.count.to_string());
        push_record(out, [t_s.as_str(), &self.what, &self.state, &count]);
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            t_s: time(fields, 0)?,
            what: fields[1].text.clone(),
            state: fields[2].text.clone(),
            count: number::<Self, _>(fields, 3)?,
        })
    }
}

impl Record for ProbeSample {
    const FILE: RunFile<'static> = RunFile::Probes;
    const COLUMNS: Option<&'static [&'static str]> = Some(&[
        "t_s",
        "probe",
        "of",
        "latency_s",
        "skipped",
        "value",
        "text",
        "error",
    ]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let value = self.value.map(|value| finite("value", value));
        let fields = [
            &finite("t_s", self.t_s)?,
            &self.probe,
            &self.of,
            &finite("latency_s", self.latency_s)?,
            &self.skipped.to_string(),
            &value.transpose()?.unwrap_or_default(),
            &self.text,
            &self.error,
        ];
        push_record(out, fields.into_iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        let value = match fields[5].text.as_str() {
            "" => None,
            _ => Some(number::<Self, f64>(fields, 5)?),
        };
        Ok(Self {
            t_s: time(fields, 0)?,
            probe: fields[1].text.clone(),
            of: fields[2].text.clone(),
            latency_s: number::<Self, f64>(fields, 3)?,
            skipped: number::<Self, _>(fields, 4)?,
            value,
            text: fields[6].text.clone(),
            error: fields[7].text.clone(),
        })
    }
}

impl Record for LoopTurn {
    const FILE: RunFile<'static> = RunFile::Loops;
    const COLUMNS: Option<&'static [&'static str]> = Some(&["name", "t_s", "duration_s"]);

    fn push_line(&self, out: &mut String) -> Result<(), String> {
        let fields = [
            &self.name,
            &finite("t_s", self.t_s)?,
            &finite("duration_s", self.duration_s)?,
        ];
        push_record(out, fields.into_iter().map(String::as_str));
        Ok(())
    }

    fn from_fields(fields: &[Cell]) -> Result<Self, String> {
        Ok(Self {
            name: fields[0].text.clone(),
            t_s: time(fields, 1)?,
            duration_s: number::<Self, f64>(fields, 2)?,
        })
    }
}

/// The shortest text that reads back as the same number.
pub(crate) fn finite(column: &str, value: f64) -> Result<String, String> {
    if value.is_finite() {
        Ok(value.to_string())
    } else {
        Err(format!("{column} is {value}, expected a finite number"))
    }
}

pub(crate) fn time(fields: &[Cell], index: usize) -> Result<f64, String> {
    parse("a time in seconds", &fields[index].text)
}

pub(crate) fn number<R: Record, N: FromStr<Err: Display>>(
    fields: &[Cell],
    index: usize,
) -> Result<N, String> {
    let column = R::COLUMNS
        .and_then(|columns| columns.get(index))
        .copied()
        .unwrap_or("a number");
    parse(column, &fields[index].text)
}

fn parse<N: FromStr<Err: Display>>(what: &str, text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|error| format!("expected {what}, found {text:?} ({error})"))
}
