//! What the pages take to be in their data is what the program writes there: each interface of
//! TypeScript has no field that its struct lacks, and knows which of them may be absent.

use std::collections::BTreeMap;
use std::fs;

use crate::files::root;

/// Fields with whether they may be absent.
type Fields = BTreeMap<String, bool>;

/// The report's types: an interface of `web/src/data/run.ts`, the struct and its file, and
/// whether the page must know every field.
const TYPES: &[(&str, &str, &str, bool)] = &[
    ("Run", "PageData", "lab/report/src/page_data.rs", false),
    ("Underway", "Underway", "lab/report/src/page_data.rs", true),
    ("LoadRate", "LoadRate", "lab/store/src/so_far.rs", true),
    ("Step", "Step", "lab/report/src/page_events.rs", true),
    ("Fault", "Fault", "lab/report/src/page_events.rs", true),
    ("Note", "Note", "lab/report/src/page_events.rs", true),
    (
        "Profile",
        "PageProfile",
        "lab/report/src/page_profile.rs",
        true,
    ),
    ("Process", "Process", "lab/report/src/page_data.rs", true),
    (
        "OneProcess",
        "OneProcess",
        "lab/report/src/page_data.rs",
        true,
    ),
    ("NamedLine", "Named", "lab/report/src/page_data.rs", true),
    ("Line", "Line", "lab/report/src/series.rs", true),
    (
        "Timelines",
        "Timelines",
        "lab/report/src/timelines.rs",
        true,
    ),
    ("Grown", "Grown", "lab/report/src/growing/sent.rs", true),
    ("Load", "PageLoad", "lab/report/src/page_loads.rs", true),
    (
        "PackedTimeline",
        "Timeline",
        "lab/report/src/page_loads.rs",
        true,
    ),
    (
        "LoadSummary",
        "Summary",
        "lab/load/src/summary/mod.rs",
        false,
    ),
    ("Counts", "Counts", "lab/load/src/summary/mod.rs", false),
    ("Latency", "Latency", "lab/load/src/summary/mod.rs", false),
    (
        "Expectation",
        "Expectation",
        "lab/store/src/records.rs",
        false,
    ),
];

/// The fields between the braces that follow a head, one a line.
fn fields(text: &str, head: &str, of: impl Fn(&str) -> Option<(String, bool)>) -> Fields {
    let (_, rest) = text.split_once(head).unwrap_or_else(|| panic!("no {head}"));
    let (_, body) = rest.split_once('{').expect("a brace");
    let end = body.find("\n}").expect("its end");
    // What stands deeper belongs to types of its own.
    let mut depth = 0_i32;
    let mut found = Fields::new();
    for line in body[..end].lines() {
        let line = line.trim();
        if depth == 0 && !line.starts_with("//") && !line.starts_with('*') && !line.starts_with('#')
        {
            found.extend(of(line));
        }
        let count = |brace| i32::try_from(line.matches(brace).count()).expect("a short line");
        depth += count('{') - count('}');
    }
    found
}

fn of_struct(text: &str, name: &str) -> Fields {
    fields(text, &format!("struct {name} "), |line| {
        let (name, kind) = line.split_once(": ")?;
        let name = name.rsplit(' ').next()?;
        Some((name.to_owned(), kind.starts_with("Option<")))
    })
}

fn of_interface(text: &str, name: &str) -> Fields {
    fields(text, &format!("interface {name} "), |line| {
        let (name, kind) = line.split_once(": ")?;
        let absent = name.ends_with('?') || kind.contains("| null") || kind.ends_with('{');
        let is_name = name
            .chars()
            .all(|one| one.is_alphanumeric() || "_?".contains(one));
        is_name.then(|| (name.trim_end_matches('?').to_owned(), absent))
    })
}

#[test]
fn the_pages_types_are_those_of_its_data() {
    let page = fs::read_to_string(root().join("web/src/data/run.ts")).expect("the page's types");
    let mut seen = 0;
    for (interface, name, file, whole) in TYPES {
        let file = root().join("crates").join(file);
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (taken, written) = (of_interface(&page, interface), of_struct(&text, name));
        for (field, may_be_absent) in &taken {
            let known = written.get(field);
            let known = known.unwrap_or_else(|| panic!("{interface}.{field} is in no {name}"));
            assert!(
                !known || *may_be_absent,
                "{name}.{field} may be absent, and {interface} does not know it"
            );
            seen += 1;
        }
        for field in written.keys().filter(|_| *whole) {
            assert!(
                taken.contains_key(field),
                "{name}.{field} is in no {interface}"
            );
        }
    }
    assert!(seen > 80, "{seen} fields were compared");
}
