//! The programs of both sides of a gate over an experiment file: given as a file, or built from a
//! revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempDir};

use super::args::GateArgs;
use crate::git;
use crate::output::eprint;

/// Longest time that a build may take, and how often it is looked at.
const BUILD_MOST: Duration = Duration::from_secs(2 * 3600);
const LOOK: Duration = Duration::from_millis(50);
/// Where programs that were built are kept, in the folder of the runs.
const KEPT: &str = "programs";
/// Letters of a commit in the name of its program.
const COMMIT: usize = 16;

/// What `--program` becomes on each side, the base first: its constant with the path of a program;
/// `None`: what the file says.
pub(super) type Programs = [Option<(String, String)>; 2];

/// The programs that are asked for, built if they must be.
pub(super) fn programs(args: &GateArgs) -> Result<Programs> {
    let any = args.base.is_some() || args.new.is_some();
    let constant = match &args.program {
        Some(constant) if any => constant,
        Some(_) => bail!("compare: --program is about --base and --new; give one of them, or both"),
        None if any => bail!(
            "compare: with an experiment file, --base and --new are programs or revisions; name the constant \
             of its [let] that is the program's path with --program NAME"
        ),
        None => return Ok([None, None]),
    };
    let side = |what: &Option<String>| -> Result<Option<(String, String)>> {
        let Some(what) = what else { return Ok(None) };
        let path = program(what, args)?;
        Ok(Some((constant.clone(), path.display().to_string())))
    };
    Ok([side(&args.base)?, side(&args.new)?])
}

/// A file is meant before a revision of the same name.
fn program(what: &str, args: &GateArgs) -> Result<PathBuf> {
    let file = Path::new(what);
    if file.is_file() {
        return std::path::absolute(file).with_context(|| format!("find the program {what}"));
    }
    let commit = format!("{what}^{{commit}}");
    let found = git(&["rev-parse", "--verify", "--quiet", &commit]);
    let Ok(commit) = found else {
        bail!("{what} is neither a program nor a revision of the git repository here");
    };
    let (Some(build), Some(built)) = (&args.build, &args.built) else {
        bail!(
            "{what} is a revision: say how its program is made of it, with --build CMD and --built PATH"
        );
    };
    Revision {
        name: what,
        commit: &commit,
        build,
        built,
    }
    .program(&args.out)
}

/// What is to be built.
struct Revision<'a> {
    name: &'a str,
    commit: &'a str,
    /// For a shell, in the top folder of the revision's files.
    build: &'a str,
    /// What that leaves there.
    built: &'a Path,
}

impl Revision<'_> {
    /// Its program, built unless it was before.
    fn program(&self, out: &Path) -> Result<PathBuf> {
        let building = || format!("build {}", self.name);
        let kept = std::path::absolute(out).with_context(building)?.join(KEPT);
        let program = kept.join(self.file_name());
        if program.is_file() {
            return Ok(program);
        }
        fs::create_dir_all(&kept).with_context(building)?;
        let tree = WorkTree::of(self.commit, &kept)?;
        eprint(format_args!(
            "headroom: building {}: {}",
            self.name, self.build
        ));
        self.make(&tree.path())?;
        let made = tree.path().join(self.built);
        let copy = NamedTempFile::new_in(&kept).with_context(building)?;
        // The permissions come with it.
        fs::copy(&made, copy.path())
            .with_context(|| format!("{}: it left no {}", building(), self.built.display()))?;
        copy.persist(&program).with_context(building)?;
        Ok(program)
    }

    /// Another command makes another program of the same commit.
    fn file_name(&self) -> String {
        let how = format!("{}\0{}", self.build, self.built.display());
        let how = Sha256::digest(how);
        let commit: String = self.commit.chars().take(COMMIT).collect();
        let name = self.built.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}-{commit}-{:02x}{:02x}{:02x}", how[0], how[1], how[2])
    }

    fn make(&self, tree: &Path) -> Result<()> {
        let building = || format!("build {}", self.name);
        // What it prints is for a person; the answer is the gate's.
        let command = format!("( {}\n) >&2", self.build);
        let mut child = Command::new("/bin/sh")
            .args(["-c", &command])
            .current_dir(tree)
            .stdin(Stdio::null())
            .spawn()
            .with_context(building)?;
        let begin = Instant::now();
        loop {
            match child.try_wait().with_context(building)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("{}: its command ended with {status}", building()),
                None if begin.elapsed() > BUILD_MOST => {
                    let _ = child.kill();
                    let _ = child.wait();
                    bail!("{}: it takes longer than two hours", building());
                }
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

/// Files of a commit, gone with it.
struct WorkTree {
    folder: TempDir,
}

impl WorkTree {
    fn of(commit: &str, within: &Path) -> Result<Self> {
        let folder =
            TempDir::with_prefix_in(".tree-", within).context("make a folder to build in")?;
        let tree = Self { folder };
        let path = tree.path().display().to_string();
        git(&["worktree", "add", "--quiet", "--detach", &path, commit])?;
        Ok(tree)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tree")
    }
}

impl Drop for WorkTree {
    fn drop(&mut self) {
        let path = self.path().display().to_string();
        // Where that fails, git forgets it once its folder is gone.
        let _ = git(&["worktree", "remove", "--force", &path]);
    }
}

/// The one line that git prints.
fn git(words: &[&str]) -> Result<String> {
    let printed = git::done(words, git::git(words, None, &[])?)?;
    Ok(git::line(&printed))
}
