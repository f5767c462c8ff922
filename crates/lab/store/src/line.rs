//! One record, one line: how each kind of record is written and read.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use csv::{Cell, push_record};

use crate::folder::RunFile;
use crate::{
    DatagramSample, EntityCount, Event, LimitSample, LoopTurn, MachineSample, ProbeSample,
    ProcessSample, SystemProcess, ThreadSample,
};

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

/// A record of a CSV file: its columns are its fields, in the order that is given here.
macro_rules! csv_record {
    ($record:ident, $file:ident, [$($column:ident),+]) => {
        impl Record for $record {
            const FILE: RunFile<'static> = RunFile::$file;
            const COLUMNS: Option<&'static [&'static str]> = Some(&[$(stringify!($column)),+]);

            fn push_line(&self, out: &mut String) -> Result<(), String> {
                let fields = [$(self.$column.written(stringify!($column))?),+];
                push_record(out, fields.iter().map(|field| &**field));
                Ok(())
            }

            fn from_fields(fields: &[Cell]) -> Result<Self, String> {
                let [$($column),+] = fields else {
                    let wanted = [$(stringify!($column)),+].len();
                    return Err(format!("expected {wanted} fields, found {}", fields.len()));
                };
                Ok(Self {
                    $($column: Field::read(stringify!($column), &$column.text)?),+
                })
            }
        }
    };
}

csv_record!(
    ProcessSample,
    Processes,
    [t_s, system, cpu_cores, rss_bytes, fds, threads]
);
csv_record!(
    SystemProcess,
    SystemProcesses,
    [
        system,
        pid,
        parent,
        command,
        from_s,
        to_s,
        cpu_s,
        cpu_cores_max,
        rss_bytes_max
    ]
);
csv_record!(EntityCount, Entities, [t_s, what, state, count]);
csv_record!(
    ProbeSample,
    Probes,
    [t_s, probe, of, latency_s, skipped, value, text, error]
);
csv_record!(LoopTurn, Loops, [name, t_s, duration_s]);
csv_record!(
    ThreadSample,
    Threads,
    [t_s, system, pid, thread, name, cpu_cores, waited_cores]
);
csv_record!(LimitSample, Limits, [t_s, of, what, used, most]);
csv_record!(
    MachineSample,
    Machine,
    [
        t_s,
        idle_cores,
        own_cores,
        established,
        time_wait,
        other,
        opened,
        received,
        dropped
    ]
);
csv_record!(DatagramSample, Datagrams, [t_s, system, port, dropped]);

/// What a column holds.
trait Field: Sized {
    fn written(&self, column: &str) -> Result<Cow<'_, str>, String>;
    fn read(column: &str, text: &str) -> Result<Self, String>;
}

impl Field for String {
    fn written(&self, _: &str) -> Result<Cow<'_, str>, String> {
        Ok(self.into())
    }

    fn read(_: &str, text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Field for f64 {
    fn written(&self, column: &str) -> Result<Cow<'_, str>, String> {
        Ok(finite(column, *self)?.into())
    }

    fn read(column: &str, text: &str) -> Result<Self, String> {
        parse(
            match column {
                "t_s" => "a time in seconds",
                _ => column,
            },
            text,
        )
    }
}

impl Field for Option<f64> {
    fn written(&self, column: &str) -> Result<Cow<'_, str>, String> {
        self.as_ref()
            .map_or(Ok(Cow::Borrowed("")), |value| value.written(column))
    }

    fn read(column: &str, text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            _ => f64::read(column, text).map(Some),
        }
    }
}

macro_rules! whole_numbers {
    ($($number:ty),+) => {$(
        impl Field for $number {
            fn written(&self, _: &str) -> Result<Cow<'_, str>, String> {
                Ok(self.to_string().into())
            }

            fn read(column: &str, text: &str) -> Result<Self, String> {
                parse(column, text)
            }
        }
    )+};
}

whole_numbers!(u16, u32, u64);

/// The shortest text that reads back as the same number.
fn finite(column: &str, value: f64) -> Result<String, String> {
    if value.is_finite() {
        Ok(value.to_string())
    } else {
        Err(format!("{column} is {value}, expected a finite number"))
    }
}

fn parse<N: FromStr<Err: Display>>(what: &str, text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|error| format!("expected {what}, found {text:?} ({error})"))
}
