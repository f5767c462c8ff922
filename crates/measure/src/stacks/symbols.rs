//! Names of the functions at places of a program's file, and of the kernel's.

use std::fs::File;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};

use super::go;

/// Largest file whose symbols are read, in bytes.
const MOST_BYTES: u64 = 2 << 30;
/// Most functions of a file.
const MOST_FUNCTIONS: usize = 2_000_000;
/// Longest name that is kept, in bytes; templates grow without end.
const NAME_BYTES: usize = 200;

/// The functions of a program or library.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Where parts of the file are in memory: place in the file, length, address.
    parts: Vec<(u64, u64, u64)>,
    functions: Functions,
}

/// Addresses where functions begin, how long they are (0: not told), and their names; in order.
#[derive(Debug, Default)]
struct Functions(Vec<(u64, u64, String)>);

impl Functions {
    fn of(mut found: Vec<(u64, u64, String)>) -> Self {
        // Of several names of a place the one with a length, then the shortest.
        found.sort_by(|one, other| {
            let key = |of: &(u64, u64, String)| (of.0, of.1 == 0, of.2.len());
            key(one).cmp(&key(other)).then_with(|| one.2.cmp(&other.2))
        });
        found.dedup_by_key(|of| of.0);
        Self(found)
    }

    fn at(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(from, ..)| *from <= address);
        let (from, length, name) = self.0[..after].last()?;
        (*length == 0 || address - from < *length).then_some(name)
    }
}

impl Symbols {
    /// Those of a file. Of one that cannot be read or was stripped there are few or none.
    pub fn of(path: &Path) -> Self {
        Self::read(path).unwrap_or_default()
    }

    fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        if file.metadata().ok()?.len() > MOST_BYTES {
            return None;
        }
        let cache = ReadCache::new(file);
        let object = object::File::parse(&cache).ok()?;
        let parts = object.segments().map(|part| {
            let (at, length) = part.file_range();
            (at, length, part.address())
        });
        let symbols = object.symbols().chain(object.dynamic_symbols());
        let functions =
            symbols.filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
        let functions = functions.filter_map(|symbol| {
            let name = shown(symbol.name().ok()?);
            Some((symbol.address(), symbol.size(), name))
        });
        let mut functions: Vec<_> = functions.take(MOST_FUNCTIONS).collect();
        if let Some(table) = object.section_by_name(".gopclntab") {
            let text = object.section_by_name(".text");
            let text = text.map_or(0, |text| text.address());
            functions.extend(go::functions(table.data().ok()?, text));
        }
        Some(Self {
            parts: parts.collect(),
            functions: Functions::of(functions),
        })
    }

    /// The function that stands so far into the file.
    pub fn at(&self, place: u64) -> Option<&str> {
        let mut parts = self.parts.iter();
        let (from, _, address) = parts.find(|(from, length, _)| {
            place.checked_sub(*from).is_some_and(|into| into < *length)
        })?;
        self.functions.at(address.checked_add(place - from)?)
    }
}

/// The functions of the running kernel.
#[derive(Debug, Default)]
pub struct KernelSymbols(Functions);

impl KernelSymbols {
    /// As `/proc/kallsyms` tells them; none where this user may not know addresses.
    pub fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let functions = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let name = words.next()?;
            // Zeros: addresses are hidden.
            (address > 0 && kind.eq_ignore_ascii_case("t")).then(|| (address, 0, shown(name)))
        });
        Self(Functions::of(functions.take(MOST_FUNCTIONS).collect()))
    }

    /// The function at an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        self.0.at(address)
    }
}

/// As a person reads it: Rust's names without their hashes; without what separates frames from
/// one another in folded stacks.
pub(super) fn shown(name: &str) -> String {
    let mut name = format!("{:#}", rustc_demangle::demangle(name));
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.replace([';', '\n'], ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_the_function_that_covers_it() {
        let functions = Functions::of(vec![
            (100, 0, "weak".into()),
            (100, 10, "first_alias".into()),
            (100, 10, "first".into()),
            (120, 0, "open".into()),
        ]);
        assert_eq!(functions.at(99), None);
        assert_eq!(functions.at(109), Some("first"));
        assert_eq!(functions.at(110), None);
        assert_eq!(functions.at(5000), Some("open"));
    }

    #[test]
    fn names_are_made_readable() {
        assert_eq!(
            shown("_ZN4core3fmt5write17h0123456789abcdefE"),
            "core::fmt::write"
        );
        assert_eq!(shown("a;b\nc"), "a:b:c");
        assert_eq!(shown(&"ä".repeat(150)).len(), NAME_BYTES);
    }

    #[test]
    fn the_kernels_functions_are_read_where_they_are_told() {
        let kernel =
            KernelSymbols::parse("0 T hidden\nff10 T one\nff20 t two\nff18 D data\nno line\n");
        assert_eq!(kernel.at(0xff1f), Some("one"));
        assert_eq!(kernel.at(0xff20), Some("two"));
        assert_eq!(kernel.at(0xff0f), None);
    }

    #[test]
    fn a_function_of_our_own_is_found_in_our_file() {
        let own = std::env::current_exe().unwrap();
        let symbols = Symbols::of(&own);
        let maps = crate::Maps::of(std::process::id()).unwrap();
        let address = a_function_of_our_own_is_found_in_our_file as fn() as usize as u64;
        let (file, place) = maps.find(address).unwrap();
        assert_eq!(**file, own);
        let name = symbols.at(place).unwrap();
        assert!(name.contains("a_function_of_our_own"), "{name}");
        assert_eq!(Symbols::of(Path::new("/nowhere")).at(place), None);
    }
}
