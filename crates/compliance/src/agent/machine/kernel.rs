//! The kernel, by its files.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::DATABASE;
use crate::agent::disk::Disk;
use crate::agent::system::SystemError;

/// A key of the kernel as its path: parts are joined by dots, or by slashes if the first of both is one.
fn kernel_path(key: &str) -> Option<PathBuf> {
    let dotted = key
        .find(['.', '/'])
        .is_none_or(|at| key[at..].starts_with('.'));
    let path: String = match dotted {
        true => key
            .chars()
            .map(|letter| match letter {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        false => key.to_owned(),
    };
    let plain = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain.then(|| Path::new("proc/sys").join(path))
}

impl Disk {
    /// A file of the kernel; none if there is none.
    fn kernel_file(&self, what: &str, path: &Path) -> Result<Option<String>, SystemError> {
        let path = self.site.kernel.join(path);
        let mut text = String::new();
        let read = fs::File::open(path)
            .and_then(|file| file.take(DATABASE as u64).read_to_string(&mut text));
        match read {
            Ok(_) => Ok(Some(text)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) => Err(SystemError::new("reading", what, error)),
        }
    }

    pub(super) fn value_of_kernel(&self, key: &str) -> Result<Option<String>, SystemError> {
        const DOING: &str = "looking up the kernel's";
        self.here(DOING, key, "the kernel is asked")?;
        let Some(path) = kernel_path(key) else {
            let problem = "it is no key; expected as in vm.swappiness";
            return Err(SystemError::new(DOING, key, problem));
        };
        let text = self.kernel_file(key, &path)?;
        Ok(text.map(|text| text.trim_end().to_owned()))
    }

    pub(super) fn has_module(&self, name: &str) -> Result<bool, SystemError> {
        self.here("looking up the module", name, "the kernel is asked")?;
        let name = name.replace('-', "_");
        let loaded = self.kernel_file(&name, Path::new("proc/modules"))?;
        let loaded = loaded.unwrap_or_default();
        let mut names = loaded.lines().filter_map(|line| line.split(' ').next());
        // What is part of the kernel itself is in no list of modules.
        let built_in = self.site.kernel.join("sys/module").join(&name);
        Ok(names.any(|found| found == name) || built_in.is_dir())
    }
}
