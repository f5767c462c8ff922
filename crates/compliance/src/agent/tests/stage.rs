//! Programs that a script plays, and a machine of which they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// Programs that are played, and a machine of which they are.
pub(super) struct Stage(tempfile::TempDir);

impl Stage {
    /// With these programs, and what each does when it is called, in the shell's words.
    pub(super) fn new(programs: &[(&str, &str)]) -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        // They are links: a file that was just written may not be run while any process of the
        // tests is about to become a program, as it still has the file open for writing.
        let played = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agent/played");
        for (name, does) in programs {
            symlink(&played, stage.path(&format!("bin/{name}"))).unwrap();
            fs::write(stage.path(&format!("bin/{name}.sh")), does).unwrap();
        }
        fs::create_dir_all(stage.path("run/systemd/system")).unwrap();
        stage
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(super) fn methods(&self) -> OnSystem<Disk> {
        let mut site = Site::with_folder(self.0.path());
        site.path = self.path("bin").into();
        site.kernel = self.0.path().into();
        site.of_root = true;
        // Nothing outside of the folder is touched.
        OnSystem::new(Disk::new(self.0.path(), site), Duration::from_secs(60))
    }

    pub(super) fn apply(&self, method: &str, params: &[(&str, &str)], mode: PolicyMode) -> Applied {
        carry_out(&mut self.methods(), &call("1", method, params), mode)
    }

    /// What was asked since the last time.
    pub(super) fn asked(&self) -> Vec<String> {
        let path = self.path("bin/asked");
        let asked = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        asked.lines().map(str::to_owned).collect()
    }
}
