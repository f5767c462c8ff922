//! Specs, as people give them: JSON, or `@` and the name of a file that holds it.

use std::fs::File;
use std::io::Read as _;

use diego::json::{self, Shape, shapes};
use diego::models::{DesiredLrp, DesiredLrpUpdate, Task};
use prost::Message;

use super::Failure;

/// Longest text of a spec, as a BBS takes no longer request.
const BYTES_MOST: u64 = 16 << 20;

/// The text of a spec.
#[derive(Debug, Clone)]
pub struct Spec(String);

impl Spec {
    /// From an argument: `@FILE`, or the text itself.
    ///
    /// # Errors
    /// When the file cannot be read, is longer than 16 MiB or is not UTF-8.
    pub fn from_argument(argument: &str) -> Result<Self, Failure> {
        let Some(path) = argument.strip_prefix('@') else {
            return Ok(Self(argument.to_owned()));
        };
        let bad = |cause: String| Failure::Invalid(format!("read the spec from {path:?}: {cause}"));
        let file = File::open(path).map_err(|error| bad(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(BYTES_MOST + 1).read_to_string(&mut text);
        read.map_err(|error| bad(error.to_string()))?;
        if text.len() as u64 > BYTES_MOST {
            return Err(bad(format!("it is longer than {BYTES_MOST} bytes")));
        }
        Ok(Self(text))
    }

    /// As an LRP.
    ///
    /// # Errors
    /// When it is not JSON, or a value does not fit its key; the place is told.
    pub fn desired_lrp(&self) -> Result<DesiredLrp, Failure> {
        self.message(&shapes::DESIRED_LRP)
    }

    /// As a change of an LRP.
    ///
    /// # Errors
    /// As [`Spec::desired_lrp`].
    pub fn update(&self) -> Result<DesiredLrpUpdate, Failure> {
        self.message(&shapes::DESIRED_LRP_UPDATE)
    }

    /// As a task.
    ///
    /// # Errors
    /// As [`Spec::desired_lrp`].
    pub fn task(&self) -> Result<Task, Failure> {
        self.message(&shapes::TASK)
    }

    fn message<M: Message + Default>(&self, shape: &'static Shape) -> Result<M, Failure> {
        let bad = |cause: String| Failure::Invalid(format!("Invalid JSON: {cause}"));
        // To Go `null` is a record without anything: what that lacks is the BBS's to tell.
        if self.0.trim_matches([' ', '\t', '\r', '\n']) == "null" {
            return Ok(M::default());
        }
        let bytes = json::read(shape, &self.0).map_err(|error| bad(error.to_string()))?;
        // Only what is nested too deep can be written and not be read.
        M::decode(&*bytes).map_err(|error| bad(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid(spec: Result<impl std::fmt::Debug, Failure>) -> String {
        let failure = spec.unwrap_err();
        assert_eq!(failure.exit_code(), 3);
        failure.to_string()
    }

    #[test]
    fn a_spec_is_a_text_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spec.json");
        let argument = format!("@{}", path.display());
        assert!(invalid(Spec::from_argument(&argument)).contains("No such file"));
        std::fs::write(&path, br#"{"task_guid":"t","rootfs":"r"}"#).unwrap();
        let task = Spec::from_argument(&argument).unwrap().task().unwrap();
        assert_eq!(task.task_guid, "t");
        assert_eq!(task.task_definition.unwrap().root_fs, "r");
        let task = Spec::from_argument(r#"{"task_guid":"t"}"#).unwrap();
        assert_eq!(task.task().unwrap().task_definition, None);
        std::fs::write(&path, b"\xff").unwrap();
        assert!(invalid(Spec::from_argument(&argument)).contains("UTF-8"));
        let file = File::create(&path).unwrap();
        file.set_len(BYTES_MOST + 1).unwrap();
        assert!(invalid(Spec::from_argument(&argument)).contains("longer than 16777216 bytes"));
        let folder = format!("@{}", folder.path().display());
        assert!(invalid(Spec::from_argument(&folder)).contains("directory"));
    }

    #[test]
    fn null_is_a_record_without_anything() {
        let spec = Spec(" null\n".into());
        assert_eq!(spec.desired_lrp(), Ok(DesiredLrp::default()));
        assert_eq!(spec.update(), Ok(DesiredLrpUpdate::default()));
        assert_eq!(spec.task(), Ok(Task::default()));
        assert!(invalid(Spec("nulls".into()).update()).starts_with("Invalid JSON: "));
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let spec = Spec("not json".into());
        assert!(invalid(spec.desired_lrp()).starts_with("Invalid JSON: expected ident"));
        let spec = Spec(r#"{"instances":"4"}"#.into());
        assert!(invalid(spec.update()).starts_with("Invalid JSON: instances: expected a whole"));
        let deep = format!(
            r#"{{"action":{}{{}}{}}}"#,
            r#"{"try":{"action":"#.repeat(80),
            "}}".repeat(80)
        );
        assert!(invalid(Spec(deep).task()).contains("Invalid JSON: "));
    }
}
