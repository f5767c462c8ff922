//! What waits for the upstream, on the disk, and what it refused.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::item::{Head, ItemError};
use super::quarantine::Quarantine;
use crate::reports::decision::UnixMillis;
use crate::spool::{Admitted, Bounds, Done, Folder, Full, Outcome, Queue};

/// The ending of an upload's file.
const ITEM: &str = ".item";

/// Uploads that wait.
pub(super) struct Spool {
    folder: Folder,
    queue: Mutex<Queue>,
    /// What the upstream will never take.
    undelivered: Quarantine,
    /// Told when something came.
    pub(super) came: Notify,
}

/// Why an upload cannot wait here.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    /// There is no room.
    #[error(transparent)]
    Full(#[from] Full),
    /// The disk cannot.
    #[error("keep it on the disk: {0}")]
    Disk(#[from] io::Error),
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) items: usize,
    pub(super) bytes: u64,
    /// How long the oldest has waited.
    pub(super) oldest: Duration,
}

fn name_of(number: u64) -> String {
    format!("{number:020}{ITEM}")
}

impl Spool {
    /// What waits in this folder goes on waiting; files that cannot be read are put aside, and
    /// told of.
    pub(super) fn open(place: &Path, bounds: Bounds) -> io::Result<(Self, Vec<ItemError>)> {
        let folder = Folder::open_alone(place.join("spool"))?;
        let undelivered = Quarantine::open(place.join("undelivered"))?;
        let (mut queue, mut problems) = (Queue::new(bounds), Vec::new());
        for (name, bytes) in folder.list(ITEM)? {
            let number = name
                .strip_suffix(ITEM)
                .and_then(|number| number.parse().ok());
            let head = Head::of_file(&folder.path(&name), bytes);
            match (number, head) {
                (Some(number), Ok(head)) => queue.restore(number, head.entry(bytes)),
                (_, head) => {
                    let problem = head
                        .err()
                        .unwrap_or_else(|| ItemError::Damaged(format!("its name is {name:?}")));
                    undelivered.add(&name, &problem.to_string(), &folder.read(&name)?)?;
                    folder.remove(&name)?;
                    problems.push(problem);
                }
            }
        }
        let spool = Self {
            folder,
            queue: Mutex::new(queue),
            undelivered,
            came: Notify::new(),
        };
        Ok((spool, problems))
    }

    /// For a short time.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an upload: it is durable when this returns. False if the same run waits already.
    ///
    /// # Errors
    /// There is no room, or the disk cannot: nothing is kept.
    pub(super) fn add(
        &self,
        head: &Head,
        content: &[u8],
        now: UnixMillis,
    ) -> Result<bool, SpoolError> {
        let line = head.line();
        let bytes = (line.len() + content.len()) as u64;
        let number = match self.queue().admit(head.entry(bytes), now) {
            Admitted::Room(number) => number,
            Admitted::Known => return Ok(false),
            Admitted::Full(full) => return Err(full.into()),
        };
        match self.folder.put(&name_of(number), &[&line, content]) {
            Ok(()) => self.queue().written(number),
            Err(error) => {
                self.queue().not_written(number);
                return Err(error.into());
            }
        }
        self.came.notify_one();
        Ok(true)
    }

    /// The number of the upload that goes next.
    pub(super) fn next(&self, now: UnixMillis) -> Option<u64> {
        self.queue().next(now)
    }

    /// When one that waits by itself may go again.
    pub(super) fn wakes(&self) -> Option<UnixMillis> {
        self.queue().wakes()
    }

    /// An upload that goes.
    pub(super) fn read(&self, number: u64) -> Result<(Head, Bytes), ItemError> {
        Head::split(self.folder.read(&name_of(number))?.into())
    }

    /// What became of an upload, and why; true if it was put aside.
    ///
    /// # Errors
    /// The disk cannot put it aside or remove it: it is sent again after the next start.
    pub(super) fn done(
        &self,
        number: u64,
        outcome: Outcome,
        why: &str,
        now: UnixMillis,
    ) -> io::Result<bool> {
        let done = self.queue().done(number, outcome, now);
        let name = name_of(number);
        match done {
            Done::Stays => return Ok(false),
            Done::Gone => {}
            Done::Aside => {
                let file = self.folder.read(&name).unwrap_or_default();
                self.undelivered.add(&name, why, &file)?;
            }
        }
        self.folder.remove(&name)?;
        Ok(done == Done::Aside)
    }

    /// How much waits.
    pub(super) fn size(&self, now: UnixMillis) -> Size {
        let queue = self.queue();
        let (items, bytes) = queue.size();
        Size {
            items,
            bytes,
            oldest: queue.oldest(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(node: &str, run: UnixMillis) -> Head {
        Head {
            node: node.into(),
            path: format!("/reports/{node}_{run}.log.gz"),
            arrived: 1,
            run: Some(run),
            digest: 0,
            signature: None,
            relays: String::new(),
            bytes: 4,
        }
    }

    fn open(place: &Path) -> Spool {
        let (spool, problems) = Spool::open(place, Bounds::default()).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        spool
    }

    #[test]
    fn what_waits_is_there_again_after_a_start_in_its_order() {
        let place = tempfile::tempdir().unwrap();
        let spool = open(place.path());
        for run in 1..4 {
            assert!(spool.add(&head("a", run), b"text", 1).unwrap());
            assert!(!spool.add(&head("a", run), b"text", 1).unwrap());
        }
        let first = spool.next(1).unwrap();
        assert!(!spool.done(first, Outcome::Taken, "", 1).unwrap());
        drop(spool);
        let spool = open(place.path());
        let now = 5_001;
        let size = spool.size(now);
        assert_eq!((size.items, size.oldest), (2, Duration::from_secs(5)));
        assert!(!spool.add(&head("a", 2), b"text", 1).unwrap());
        for run in [2, 3] {
            let number = spool.next(now).unwrap();
            let (read, content) = spool.read(number).unwrap();
            assert_eq!((read, &content[..]), (head("a", run), &b"text"[..]));
            spool.done(number, Outcome::Taken, "", now).unwrap();
        }
        assert_eq!(spool.next(now), None);
        assert!(open(place.path()).size(now).items == 0);
    }

    #[test]
    fn parts_of_a_run_wait_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let part = Head {
            digest: 5,
            ..head("a", 1)
        };
        let all = [part, head("a", 1)];
        let spool = open(place.path());
        for one in &all {
            assert!(spool.add(one, b"text", 1).unwrap());
            assert!(!spool.add(one, b"text", 1).unwrap());
        }
        drop(spool);
        let spool = open(place.path());
        for one in &all {
            assert!(!spool.add(one, b"text", 1).unwrap());
        }
    }

    #[test]
    fn what_is_refused_or_damaged_is_put_aside_and_the_rest_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let spool = open(place.path());
        for node in ["a", "b", "c"] {
            spool.add(&head(node, 1), b"text", 1).unwrap();
        }
        let refused = spool.next(1).unwrap();
        assert!(spool.done(refused, Outcome::Refused, "no", 1).unwrap());
        let damaged = spool.next(1).unwrap();
        std::fs::write(spool.folder.path(&name_of(damaged)), "{}").unwrap();
        drop(spool);
        let (spool, problems) = Spool::open(place.path(), Bounds::default()).unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(spool.size(1).items, 1);
        let aside = std::fs::read_dir(place.path().join("undelivered")).unwrap();
        assert_eq!(aside.count(), 2);
        assert!(spool.next(1).is_some());
    }

    #[test]
    fn what_cannot_be_written_is_not_kept() {
        let place = tempfile::tempdir().unwrap();
        let spool = open(place.path());
        // A folder in the place of the file.
        std::fs::create_dir(spool.folder.path(&name_of(1))).unwrap();
        let refused = spool.add(&head("a", 1), b"text", 1);
        assert!(matches!(refused, Err(SpoolError::Disk(_))), "{refused:?}");
        assert_eq!(spool.size(1).items, 0);
        assert!(spool.add(&head("a", 1), b"text", 1).unwrap());
    }
}
