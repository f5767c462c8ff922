//! The reference shows only files that are good.

use crate::support::checked;

const REFERENCE: &str = include_str!("../../../../docs/experiment-file.md");

#[test]
fn every_example_is_a_plan() {
    let examples: Vec<&str> = REFERENCE
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 5, "found {}", examples.len());
    for example in examples {
        if let Err(rendered) = checked(example, &[]) {
            panic!("{rendered}\n\nin\n{example}");
        }
    }
}

#[test]
fn the_shown_problem_is_what_people_see() {
    let file = "lab = 1\nname = \"t\"\n\n\n\n[[step]]\nname = \"s\"\nhold = \"1s\"\n[[system]]\n\
                name = \"a\"\nrun = \"x\"\nredy = \"tcp\"\n";
    let rendered = checked(file, &[]).err().unwrap_or_default();
    assert!(
        REFERENCE.contains(&rendered.replace("x.toml", "fezzik.toml")),
        "{rendered}"
    );
}
