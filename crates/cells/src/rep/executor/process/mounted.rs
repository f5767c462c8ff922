//! Files that come with the work itself, such as the credentials of its services.

use std::path::Path;

use super::super::Job;
use super::place::{inside, put_file};
use super::transfer::folder_within;

/// Where they are in a container.
const FOLDER: &str = "/etc/cf-service-bindings";

/// Puts those of a container into its folder. The error says what failed.
pub(super) fn put(job: &Job, folder: &Path) -> Result<(), String> {
    for file in job.mounted_files() {
        let refuse = |problem: &str| format!("the file {:?} {problem}", file.path);
        let path = inside(&file.path).ok_or_else(|| refuse("lies outside of the container"))?;
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(refuse("has no name; expected one such as service/name"));
        };
        let above = Path::new(FOLDER.trim_start_matches('/')).join(above);
        let above = folder_within(folder, &above).map_err(|cause| refuse(&cause.to_string()))?;
        let put = put_file(&above.join(name), file.content.as_bytes(), 0o644, None);
        put.map_err(|cause| refuse(&cause.to_string()))?;
    }
    Ok(())
}

/// The value of a variable; if it is the path of such files, where the machine has them.
pub(super) fn value_behind(job: &Job, folder: &Path, value: &str) -> String {
    let rest = value.strip_prefix(FOLDER);
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match rest {
        Some(_) if !job.mounted_files().is_empty() => format!("{}{value}", folder.display()),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use diego::models::{File, TaskDefinition};

    use super::super::super::Definition;
    use super::super::tests::job;
    use super::*;

    fn with(files: &[(&str, &str)]) -> Job {
        let file = |(path, content): &(&str, &str)| File {
            path: (*path).into(),
            content: (*content).into(),
        };
        let definition = TaskDefinition {
            volume_mounted_files: files.iter().map(file).collect(),
            ..TaskDefinition::default()
        };
        job(Definition::Task(Box::new(definition)))
    }

    #[test]
    fn files_lie_where_their_paths_say_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let job = with(&[
            ("db/user.tmp", "mine"),
            ("/db/user", "me"),
            ("db/password", "old"),
            ("alone", ""),
        ]);
        put(&job, folder.path()).unwrap();
        let job = with(&[("db/password", "new")]);
        put(&job, folder.path()).unwrap();
        let text = |name: &str| {
            let within = folder.path().join("etc/cf-service-bindings");
            std::fs::read_to_string(within.join(name)).unwrap()
        };
        assert_eq!(text("db/user"), "me");
        assert_eq!(text("db/user.tmp"), "mine");
        assert_eq!(text("db/password"), "new");
        assert_eq!(text("alone"), "");
        let within = folder.path().join("etc/cf-service-bindings/db");
        std::fs::create_dir(within.join("taken")).unwrap();
        let told = put(&with(&[("db/taken", "x")]), folder.path()).unwrap_err();
        assert!(told.contains("directory"), "{told}");
        let left = std::fs::read_dir(within).unwrap();
        assert_eq!(left.count(), 4, "and nothing of what failed");
        for (path, expected) in [
            ("", "has no name"),
            ("/", "has no name"),
            ("../up", "lies outside of the container"),
            ("db/user/x", "is not a folder"),
        ] {
            let told = put(&with(&[(path, "x")]), folder.path()).unwrap_err();
            assert!(told.contains(expected), "{path:?}: {told}");
        }
    }

    #[test]
    fn a_link_in_their_place_is_replaced_and_one_that_leads_out_is_refused() {
        let [folder, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let within = folder.path().join("etc/cf-service-bindings/db");
        std::fs::create_dir_all(&within).unwrap();
        let target = other.path().join("target");
        std::fs::write(&target, "untouched").unwrap();
        std::os::unix::fs::symlink(&target, within.join("user")).unwrap();
        put(&with(&[("db/user", "me")]), folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(within.join("user")).unwrap(), "me");
        std::os::unix::fs::symlink(other.path(), within.join("out")).unwrap();
        let told = put(&with(&[("db/out/user", "me")]), folder.path()).unwrap_err();
        assert!(told.contains("lies outside of the container"), "{told}");
        assert!(!other.path().join("user").exists());
    }

    #[test]
    fn variables_show_where_the_machine_has_them() {
        let (some, none) = (with(&[("db/user", "me")]), with(&[]));
        let behind = |job: &Job, value: &str| value_behind(job, Path::new("/c"), value);
        for value in [FOLDER, "/etc/cf-service-bindings/vcap_services"] {
            assert_eq!(behind(&some, value), format!("/c{value}"));
            assert_eq!(behind(&none, value), value);
        }
        for value in ["", "/etc", "/etc/cf-service-bindings-of-mine", "x"] {
            assert_eq!(behind(&some, value), value);
        }
    }
}
