//! XML as inventories use it: records of a `CONTENT`, each with texts by their paths.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::{InventoryError, Limits};

/// An element directly below `CONTENT`.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) name: String,
    /// Path below the record, with `/`, and text without needless space; in order.
    fields: Vec<(String, String)>,
}

impl Record {
    /// The first text at a path that is not empty.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        let mut all = self.fields.iter();
        let found = all.find(|(at, text)| at == path && !text.is_empty());
        found.map(|(_, text)| text.as_str())
    }

    /// The fields of each element of this name directly below the record, one after another.
    pub(super) fn groups<'r>(
        &'r self,
        name: &'r str,
    ) -> impl Iterator<Item = &'r [(String, String)]> {
        // An element's own text follows on what is in it.
        let groups = self.fields.split_inclusive(move |(at, _)| at == name);
        groups.filter(move |group| group.last().is_some_and(|(at, _)| at == name))
    }

    /// All texts at a path that are not empty.
    pub(super) fn all<'r>(&'r self, path: &'r str) -> impl Iterator<Item = &'r str> {
        let all = self.fields.iter();
        let found = all.filter(move |(at, text)| at == path && !text.is_empty());
        found.map(|(_, text)| text.as_str())
    }
}

/// May a text of XML 1.0 have this character, by a number or as it is?
pub(super) fn is_of_xml(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Passes the records to `take`, one after another.
pub(super) fn read(
    xml: &[u8],
    limits: &Limits,
    mut take: impl FnMut(&Record) -> Result<(), InventoryError>,
) -> Result<(), InventoryError> {
    let too_large = |what, limit| Err(InventoryError::TooLarge { what, limit });
    if xml.len() > limits.bytes {
        return too_large("bytes", limits.bytes);
    }
    let text = str::from_utf8(xml).map_err(|error| InventoryError::Xml {
        at: error.valid_up_to() as u64,
        problem: "bytes that are not UTF-8".into(),
    })?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut path: Vec<String> = Vec::new();
    let (mut elements, mut own) = (0, String::new());
    let mut record = Record::default();
    loop {
        let at = reader.buffer_position();
        let wrong = |problem: String| InventoryError::Xml { at, problem };
        let event = reader
            .read_event()
            .map_err(|error| wrong(error.to_string()))?;
        match event {
            Event::Start(start) => {
                elements += 1;
                if elements > limits.elements {
                    return too_large("elements", limits.elements);
                }
                if path.len() >= limits.depth {
                    return too_large("elements inside of each other", limits.depth);
                }
                let name = start.name().as_ref().to_owned();
                match (path.len(), name.as_str()) {
                    (0, "REQUEST") => {}
                    (0, other) => {
                        let other: String = other.chars().take(64).collect();
                        return Err(wrong(format!("the root is {other}, not REQUEST")));
                    }
                    (2, _) => {
                        record.fields.clear();
                        record.name.clone_from(&name);
                    }
                    _ => {}
                }
                path.push(name);
                own.clear();
            }
            Event::End(_) => {
                if path.get(1).is_some_and(|name| name == "CONTENT") {
                    if path.len() > 3 {
                        let place = path.get(3..).unwrap_or_default().join("/");
                        // The JSON of hooks is told as it is: blanks of its texts are theirs.
                        let json = place == "CUSTOM_PROPERTIES";
                        let kept = if json {
                            own.clone()
                        } else {
                            collapse_blanks(&own)
                        };
                        record.fields.push((place, kept));
                    } else if path.len() == 3 {
                        take(&record)?;
                    }
                }
                own.clear();
                path.pop();
            }
            Event::Text(text) => add(&mut own, &text.xml10_content()).map_err(wrong)?,
            Event::CData(text) => add(&mut own, &text.xml10_content()).map_err(wrong)?,
            Event::GeneralRef(reference) => {
                let character = reference
                    .resolve_char_ref()
                    .map_err(|error| wrong(error.to_string()))?;
                let name: &str = &reference;
                match (character, name) {
                    (Some(character), _) => {
                        add(&mut own, character.encode_utf8(&mut [0; 4])).map_err(wrong)?;
                    }
                    (_, "lt") => own.push('<'),
                    (_, "gt") => own.push('>'),
                    (_, "amp") => own.push('&'),
                    (_, "quot") => own.push('"'),
                    (_, "apos") => own.push('\''),
                    (_, other) => {
                        let other: String = other.chars().take(64).collect();
                        return Err(wrong(format!("the entity &{other};, which XML lacks")));
                    }
                }
            }
            Event::DocType(_) => return Err(wrong("a document type".into())),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Empty(_) => {}
            Event::Eof => break,
        }
        if own.len() > limits.text_bytes {
            return too_large("bytes of one text", limits.text_bytes);
        }
    }
    if let Some(open) = path.last() {
        let at = reader.buffer_position();
        let problem = format!("the end, while {open} is open");
        return Err(InventoryError::Xml { at, problem });
    }
    if elements == 0 {
        let problem = "no element".to_owned();
        return Err(InventoryError::Xml { at: 0, problem });
    }
    Ok(())
}

/// A text without space around it, and with one blank where it has several: firmware pads the names
/// of processors, and Rudder keeps them so.
fn collapse_blanks(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for character in text.trim().chars() {
        match character {
            ' ' | '\t' if kept.ends_with(' ') => {}
            '\t' => kept.push(' '),
            _ => kept.push(character),
        }
    }
    kept
}

/// Adds a part of a text; what is wrong with it otherwise.
fn add(own: &mut String, part: &str) -> Result<(), String> {
    if let Some(odd) = part.chars().find(|one| !is_of_xml(*one)) {
        let number = u32::from(odd);
        return Err(format!("the character U+{number:04X}, which XML lacks"));
    }
    own.push_str(part);
    Ok(())
}
