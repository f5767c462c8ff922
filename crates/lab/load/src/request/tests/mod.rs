//! Requests as they are written, judged and refused.

mod judged;
mod written;
mod wrong;

use super::*;
use crate::workload::Target;

fn target(url: &str) -> Target {
    Target::parse(url).unwrap().0
}

fn http() -> Target {
    target("http://example.com:8080")
}

fn get(path: &str) -> Step {
    Step::new("get", "GET", path)
}

fn compose(mix: &Mix) -> Composer {
    Composer::new(mix, &http(), 1).unwrap_or_else(|error| panic!("{error}"))
}

fn composed(step: Step) -> Composer {
    compose(&Mix::of(step))
}

fn refused(step: Step) -> RequestError {
    Composer::new(&Mix::of(step), &http(), 1).unwrap_err()
}

fn written(composer: &Composer, visit: &Visit) -> String {
    let mut out = Vec::new();
    composer.write(visit, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn answer<'a>(status: u16, fields: &'a str, body: &'a str) -> Answer<'a> {
    Answer {
        status,
        fields: fields.as_bytes(),
        body: body.as_bytes(),
        body_bytes: body.len() as u64,
        rows: 0,
    }
}

/// A mix of one journey.
fn journey(steps: Vec<Step>) -> Mix {
    Mix {
        journeys: vec![Journey {
            name: "user".into(),
            weight: 1.0,
            steps,
        }],
        tables: BTreeMap::new(),
    }
}

fn users() -> BTreeMap<String, Table> {
    let table =
        Table::parse("email,path,note\na@x,/a,\"1\r\n2\"\nb@x,/b b,ok\nc@x,https://h/c?d=e#f,ok\n");
    BTreeMap::from([("users".to_owned(), table.unwrap())])
}
