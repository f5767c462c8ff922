//! `inputs` of a system: where it writes its log to by itself.

use std::net::SocketAddr;

use document::Problem;
use glob::Pattern;

use super::fields::Field;
use super::values::{Reader, all};
use crate::names::Place;
use crate::plan::{Form, Input, Reference, Segment, Template};

/// Most of them.
const MOST: usize = 64;

/// What a text becomes.
type Of = fn(Template) -> Input;

/// Words before an address, and what they make of it.
const SOCKETS: [(&str, Of); 2] = [("tcp", Input::Tcp), ("udp", Input::Udp)];

/// Reads the key.
pub(super) fn read(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Vec<Input>> {
    let items = reader.list(field, "a list of files such as [\"{work}/app/*.log\"]")?;
    if items.len() > MOST {
        let message = format!("\"inputs\" has more than {MOST} entries");
        return reader.refuse(Problem::new(field.span(), message));
    }
    all(items.into_iter().map(|item| input(reader, item)))
}

fn input(reader: &mut Reader<'_>, item: Field<'_>) -> Option<Input> {
    let text = reader.template(item, Place::System)?;
    if let Some(words) = behind("journal", &text) {
        return journal(reader, item, &words);
    }
    for (word, of) in SOCKETS {
        if let Some(address) = behind(word, &text) {
            return socket(reader, item, word, address).map(of);
        }
    }
    let (place, of): (_, Of) = match behind("unix", &text) {
        Some(place) => (place, Input::Unix),
        None => (text, Input::Files),
    };
    let begins = match place.0.first() {
        Some(Segment::Text(text)) => text.starts_with('/'),
        Some(Segment::Reference(Reference::Work | Reference::OwnDisk)) => true,
        _ => false,
    };
    if !begins {
        let problem = Problem::new(item.span(), "the place of a log is a whole path");
        return reader.refuse(problem.help(
            "begin with {work}/ or with /, or say where else: \"journal UNIT\", \"tcp {addr.log}\", \
             \"udp {addr.log}\", \"unix {work}/log\"",
        ));
    }
    // What a reference stands for has no wildcards.
    if let Err(error) = Pattern::new(&place.render(|_| "x".to_owned())) {
        let message = format!("no pattern of file names: {}", error.msg);
        return reader.refuse(Problem::new(item.span(), message));
    }
    Some(of(place))
}

/// What stands behind a first word; `None`: the text begins otherwise.
fn behind(word: &str, text: &Template) -> Option<Template> {
    let Some(Segment::Text(first)) = text.0.first() else {
        return None;
    };
    let rest = first.strip_prefix(word)?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let mut segments = text.0.clone();
    segments[0] = Segment::Text(rest.trim_start().to_owned());
    segments.retain(|segment| *segment != Segment::Text(String::new()));
    Some(Template(segments))
}

/// An address at which the laboratory listens: one that it allots, or one that is written out.
fn socket(
    reader: &mut Reader<'_>,
    item: Field<'_>,
    word: &str,
    address: Template,
) -> Option<Template> {
    let is_one = match &*address.0 {
        [Segment::Reference(Reference::OwnFurther(Form::Addr, _))] => true,
        [Segment::Text(text)] => text.parse::<SocketAddr>().is_ok_and(|at| at.port() > 0),
        _ => false,
    };
    if is_one {
        return Some(address);
    }
    let message = format!("\"{word}\" needs an address at which the laboratory listens");
    reader.refuse(Problem::new(item.span(), message).help(format!(
        "give the system a further port, ports = [\"log\"], and say \"{word} {{addr.log}}\"; or an address such as \
         \"{word} 127.0.0.1:5514\""
    )))
}

/// Units, fields with their values, and a namespace.
fn journal(reader: &mut Reader<'_>, item: Field<'_>, words: &Template) -> Option<Input> {
    let words = split(words);
    let chooses = |word: &Template| match word.0.first() {
        Some(Segment::Text(text)) => !text.starts_with('-') || text.starts_with("--namespace="),
        first => first.is_some(),
    };
    let some = words
        .iter()
        .any(|word| !matches!(word.0.first(), Some(Segment::Text(text)) if text.starts_with('-')));
    if some && words.iter().all(chooses) {
        return Some(Input::Journal(words));
    }
    let problem = Problem::new(item.span(), "which entries of the journal?");
    reader.refuse(problem.help(
        "name units, \"journal nginx.service\", or fields, \"journal SYSLOG_IDENTIFIER=shop\"; the only option is \
         --namespace=NAME",
    ))
}

/// The words of a text; what a reference stands for is a part of one.
fn split(text: &Template) -> Vec<Template> {
    let mut words = vec![Vec::new()];
    for segment in &text.0 {
        let mut parts = vec![segment.clone()];
        if let Segment::Text(text) = segment {
            parts = text
                .split(' ')
                .map(|word| Segment::Text(word.to_owned()))
                .collect();
        }
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                words.push(Vec::new());
            }
            if part != Segment::Text(String::new()) {
                words
                    .last_mut()
                    .into_iter()
                    .for_each(|word| word.push(part.clone()));
            }
        }
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(Template).collect()
}
