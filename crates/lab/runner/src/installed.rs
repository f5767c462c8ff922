//! Programs that this machine has, by their names.

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};

/// Where Debian and others put servers, which is not in everybody's PATH.
const SERVERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Whether a program can be found by its name.
pub(crate) fn is_installed(program: &str) -> bool {
    find(program, &path()).is_some() || find(program, &servers()).is_some()
}

/// The file of a program that is not in PATH and stands where servers do.
pub(crate) fn server(program: &str) -> Option<PathBuf> {
    beside(program, &path(), &servers())
}

fn path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

fn servers() -> Vec<PathBuf> {
    SERVERS.map(PathBuf::from).to_vec()
}

/// The file of a program that none of the usual folders has, in one of the others.
fn beside(program: &str, usual: &[PathBuf], others: &[PathBuf]) -> Option<PathBuf> {
    let is_name = !program.contains('/');
    match is_name && find(program, usual).is_none() {
        true => find(program, others),
        false => None,
    }
}

/// The file of a program in the first folder that has it.
fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let mut files = folders.iter().map(|folder| folder.join(program));
    files.find(|file| {
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        is_file && access(file, AccessFlags::X_OK).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_server_is_found_beside_the_path_and_what_is_in_it_comes_first() {
        let root = tempfile::tempdir().unwrap();
        let [bin, sbin] = ["bin", "sbin"].map(|name| root.path().join(name));
        for (folder, name, mode) in [
            (&bin, "both", 0o755),
            (&sbin, "both", 0o755),
            (&sbin, "server", 0o755),
            (&sbin, "data", 0o644),
        ] {
            fs::create_dir_all(folder).unwrap();
            let file = folder.join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let (usual, others) = ([bin], [sbin.clone()]);
        let found = |program: &str| beside(program, &usual, &others);
        assert_eq!(found("server"), Some(sbin.join("server")));
        for program in ["both", "data", "none", "./server"] {
            assert_eq!(found(program), None, "{program}");
        }
    }
}
