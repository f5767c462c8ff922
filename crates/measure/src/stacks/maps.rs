//! Which file the code at an address of a process comes from.

use std::path::PathBuf;
use std::sync::Arc;

/// Most parts of a process's memory that are kept.
const MOST: usize = 20_000;

/// The parts of a process's memory that hold code, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps(Vec<Map>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Map {
    from: u64,
    to: u64,
    offset: u64,
    /// `None`: of no file, as what a program compiles while it runs.
    file: Option<Arc<PathBuf>>,
}

impl Maps {
    /// Those of a process now; `None`: it has ended, or is another user's.
    pub fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        // A process that is just ending has none.
        (!text.is_empty()).then(|| Self::parse(&text))
    }

    /// Reads `/proc/PID/maps` (proc_pid_maps(5)). Lines that are none are left out.
    pub fn parse(text: &str) -> Self {
        let maps = text.lines().filter_map(parse).take(MOST);
        Self(maps.collect())
    }

    /// The file that the code at an address comes from, and how far into the file it stands;
    /// `None`: no file's.
    pub fn find(&self, address: u64) -> Option<(&Arc<PathBuf>, u64)> {
        let after = self.0.partition_point(|map| map.from <= address);
        let map = self.0[..after].last().filter(|map| address < map.to)?;
        let file = map.file.as_ref()?;
        Some((file, map.offset.checked_add(address - map.from)?))
    }
}

/// `55d0-55e0 r-xp 00002000 fe:00 1234   /usr/bin/x`
fn parse(line: &str) -> Option<Map> {
    let mut words = line.splitn(6, ' ');
    let (from, to) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let file = words.nth(2).unwrap_or_default().trim();
    let number = |text| u64::from_str_radix(text, 16).ok();
    rights.contains('x').then_some(())?;
    Some(Map {
        from: number(from)?,
        to: number(to)?,
        offset: number(offset)?,
        file: file.starts_with('/').then(|| Arc::new(file.into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_file() {
        let maps = Maps::parse(
            "1000-2000 r--p 00000000 fe:00 12 /usr/bin/x\n\
             2000-4000 r-xp 00001000 fe:00 12                     /usr/bin/x y\n\
             4000-5000 rwxp 00000000 00:00 0 \n\
             7000-8000 r-xp 00000000 00:00 0                      [vdso]\nwhat is this\n",
        );
        let found = |address| {
            maps.find(address)
                .map(|(file, at)| (file.display().to_string(), at))
        };
        assert_eq!(found(0x2010), Some(("/usr/bin/x y".to_owned(), 0x1010)));
        assert_eq!(found(0x3fff), Some(("/usr/bin/x y".to_owned(), 0x2fff)));
        for nowhere in [0, 0x1500, 0x4000, 0x6000, 0x7000, u64::MAX] {
            assert_eq!(found(nowhere), None, "{nowhere:x}");
        }
        assert!(Maps::of(std::process::id()).is_some_and(|maps| !maps.0.is_empty()));
        assert_eq!(Maps::of(u32::MAX >> 1), None);
    }
}
