//! A history in a branch of a git repository: objects and a reference are written, the work tree and the
//! index stay as they are.

use std::process::Output;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::BYTES_MOST;
use super::{ENDING, PlanFile};
use crate::git;

/// How often a change is tried that somebody else was faster than; the pause grows with each.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(15);
/// More files are none of a history.
const FILES_MOST: usize = 10_000;

/// A branch by its name, which need not be there yet.
pub(super) struct Branch<'a>(pub(super) &'a str);

/// A commit of the branch.
struct Tip {
    commit: String,
    entries: Vec<Entry>,
}

/// Something that a commit holds.
struct Entry {
    /// Mode, kind and hash, as git writes them.
    about: String,
    hash: String,
    name: String,
}

impl Branch<'_> {
    /// Its files; none if there is no such branch.
    pub(super) fn read(&self) -> Result<Vec<PlanFile>> {
        match self.tip()? {
            Some(tip) => self.files(&tip),
            None => Ok(Vec::new()),
        }
    }

    /// Changes files in a commit of its own, on top of whatever is there then. `new` says which, and
    /// something more that is handed out.
    pub(super) fn change<T>(
        &self,
        new: impl Fn(&[PlanFile]) -> Result<(Vec<PlanFile>, T)>,
    ) -> Result<T> {
        self.is_checked_out_nowhere()?;
        let mut refused = String::new();
        for attempt in 1..=TRIES {
            let tip = self.tip()?;
            let files = tip.as_ref().map_or(Ok(Vec::new()), |tip| self.files(tip))?;
            let (changed, more) = new(&files)?;
            if changed.is_empty() {
                return Ok(more);
            }
            let commit = commit(tip.as_ref(), &changed)?;
            // An empty old value: there must be none.
            let old = tip.as_ref().map_or("", |tip| &tip.commit);
            let message = "headroom history: add";
            let moved = git(
                &["update-ref", "-m", message, &self.reference(), &commit, old],
                None,
            )?;
            if moved.status.success() {
                return Ok(more);
            }
            refused = git::error_text(&moved);
            thread::sleep(PAUSE * attempt);
        }
        bail!(
            "add to the branch {}: git refused it {TRIES} times: {refused}",
            self.0
        )
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }

    fn tip(&self) -> Result<Option<Tip>> {
        done(&["rev-parse", "--git-dir"], None)?;
        let reference = self.reference();
        // Only this also refuses what git takes for an option, or for the whole name of a reference.
        let is_whole = self.0.starts_with("refs/");
        if is_whole
            || !git(&["check-ref-format", "--branch", self.0], None)?
                .status
                .success()
        {
            bail!("\"{}\" cannot be the name of a branch", self.0);
        }
        let commit = format!("{reference}^{{commit}}");
        let found = git(&["rev-parse", "--verify", "--quiet", &commit], None)?;
        if !found.status.success() {
            return Ok(None);
        }
        let commit = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        let list = done(&["ls-tree", "-z", &commit], None)?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let entries: Option<Vec<Entry>> = list
            .split_terminator('\0')
            .map(|line| {
                let (about, name) = line.split_once('\t')?;
                Some(Entry {
                    hash: about.rsplit(' ').next()?.to_owned(),
                    about: about.to_owned(),
                    name: name.to_owned(),
                })
            })
            .collect();
        let entries = entries
            .with_context(|| format!("read the branch {}: git listed what is no tree", self.0))?;
        Ok(Some(Tip { commit, entries }))
    }

    fn files(&self, tip: &Tip) -> Result<Vec<PlanFile>> {
        let of_history = tip
            .entries
            .iter()
            .filter(|entry| entry.name.ends_with(ENDING));
        let of_history: Vec<&Entry> = of_history.collect();
        if of_history.is_empty() && !tip.entries.is_empty() {
            bail!(
                "the branch {} holds something else, {} for instance; name one of its own for the history",
                self.0,
                tip.entries[0].name
            );
        }
        if of_history.len() > FILES_MOST {
            bail!("the branch {} has more than {FILES_MOST} plans", self.0);
        }
        let mut files = Vec::new();
        for entry in of_history {
            let reading = || format!("read {} of the branch {}", entry.name, self.0);
            let size = done(&["cat-file", "-s", &entry.hash], None).with_context(reading)?;
            let size: u64 = String::from_utf8_lossy(&size)
                .trim()
                .parse()
                .with_context(reading)?;
            if size > BYTES_MOST {
                bail!("{}: it has more than {} MiB", reading(), BYTES_MOST >> 20);
            }
            let text = done(&["cat-file", "blob", &entry.hash], None).with_context(reading)?;
            files.push(PlanFile {
                name: entry.name.clone(),
                text: String::from_utf8(text).with_context(reading)?,
            });
        }
        Ok(files)
    }

    /// A work tree whose branch moved below it would seem to have changes that nobody made.
    fn is_checked_out_nowhere(&self) -> Result<()> {
        let trees = done(&["worktree", "list", "--porcelain"], None)?;
        let here = format!("branch {}", self.reference());
        match String::from_utf8_lossy(&trees)
            .lines()
            .any(|line| line == here)
        {
            true => bail!(
                "the branch {} is checked out; name one of its own for the history",
                self.0
            ),
            false => Ok(()),
        }
    }
}

/// A commit on top of another with these files changed; nothing refers to it yet.
fn commit(tip: Option<&Tip>, changed: &[PlanFile]) -> Result<String> {
    let mut tree: Vec<u8> = Vec::new();
    let kept = tip.map_or(&[][..], |tip| &tip.entries);
    for entry in kept
        .iter()
        .filter(|entry| changed.iter().all(|file| file.name != entry.name))
    {
        tree.extend(format!("{}\t{}\0", entry.about, entry.name).into_bytes());
    }
    for file in changed {
        let hash = line(
            &["hash-object", "-w", "--stdin"],
            Some(file.text.as_bytes()),
        )?;
        tree.extend(format!("100644 blob {hash}\t{}\0", file.name).into_bytes());
    }
    let tree = line(&["mktree", "-z"], Some(&tree))?;
    let mut words = vec!["commit-tree", &tree, "-m", "Add runs to the history"];
    words.extend(tip.iter().flat_map(|tip| ["-p", tip.commit.as_str()]));
    line(&words, None)
}

/// Runs git. Who adds a run needs no name; who has one is named.
fn git(words: &[&str], input: Option<&[u8]>) -> Result<Output> {
    if words[0] != "commit-tree" || is_named()? {
        return git::git(words, input, &[]);
    }
    let mut names = Vec::new();
    for who in ["AUTHOR", "COMMITTER"] {
        names.push((format!("GIT_{who}_NAME"), "headroom"));
        names.push((format!("GIT_{who}_EMAIL"), "headroom@localhost"));
    }
    git::git(words, input, &names)
}

fn is_named() -> Result<bool> {
    Ok(git(&["var", "GIT_COMMITTER_IDENT"], None)?.status.success())
}

fn done(words: &[&str], input: Option<&[u8]>) -> Result<Vec<u8>> {
    git::done(words, git(words, input)?)
}

fn line(words: &[&str], input: Option<&[u8]>) -> Result<String> {
    Ok(git::line(&done(words, input)?))
}
