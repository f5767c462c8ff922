//! Text with references: reading, filling in, writing.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::plan::{Program, Reference, Segment, System, Template};

impl Template {
    /// A template without references.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Segment::Text(text.into())])
    }

    /// Whether it refers to the port of a system, of its first copy, that no name is given.
    pub fn refers_to(&self, system: &str) -> bool {
        self.0.iter().any(|segment| match segment {
            Segment::Reference(Reference::Port(name) | Reference::Addr(name)) => name == system,
            _ => false,
        })
    }

    /// Whether it refers to what each copy of a system has of its own.
    pub(crate) fn is_of_a_copy(&self) -> bool {
        self.references().any(|reference| {
            matches!(
                reference,
                Reference::OwnPort
                    | Reference::OwnAddr
                    | Reference::OwnFurther(..)
                    | Reference::Index
            )
        })
    }

    /// The system whose copies it stands for all together, if it does for any.
    pub fn all_of(&self) -> Option<&str> {
        self.references().find_map(|reference| match reference {
            Reference::All { system, .. } => Some(system.as_str()),
            _ => None,
        })
    }

    /// The text, with each reference replaced by what `resolve` says.
    pub fn render(&self, resolve: impl Fn(&Reference) -> String) -> String {
        self.0
            .iter()
            .map(|segment| match segment {
                Segment::Text(text) => text.clone(),
                Segment::Reference(reference) => resolve(reference),
                Segment::Variable(variable) => format!("{{{variable}}}"),
            })
            .collect()
    }

    /// The text in the language of requests, with each reference replaced by what
    /// `resolve` says: variables stand in braces, other braces are doubled, but for those
    /// that close nothing.
    pub fn request(&self, resolve: impl Fn(&Reference) -> String) -> String {
        let mut text = String::new();
        let mut open = 0_usize;
        let mut plain = |plain: &str, text: &mut String| {
            for c in plain.chars() {
                text.push(c);
                match c {
                    '{' => open += 1,
                    '}' if open > 0 => open -= 1,
                    _ => continue,
                }
                text.push(c);
            }
        };
        for segment in &self.0 {
            match segment {
                Segment::Text(part) => plain(part, &mut text),
                Segment::Reference(reference) => plain(&resolve(reference), &mut text),
                Segment::Variable(variable) => {
                    text.push('{');
                    text.push_str(variable);
                    text.push('}');
                }
            }
        }
        text
    }

    /// Its references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Text(_) | Segment::Variable(_) => None,
            Segment::Reference(reference) => Some(reference),
        })
    }
}

impl Reference {
    /// The system that it names; `None` if what it stands for is the copy's or the run's own.
    pub fn system(&self) -> Option<&str> {
        match self {
            Self::Port(system)
            | Self::Addr(system)
            | Self::Further(_, system, _)
            | Self::Copy { system, .. }
            | Self::All { system, .. } => Some(system),
            Self::OwnPort
            | Self::OwnAddr
            | Self::Work
            | Self::OwnDisk
            | Self::Index
            | Self::OwnFurther(..)
            | Self::Kept(_) => None,
        }
    }
}

impl System {
    /// What each copy is started with: its program, its arguments and its environment.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Template> {
        let program = match &self.program {
            Program::OwnBinary => None,
            Program::Path(path) => Some(path),
        };
        let program = program.into_iter();
        program.chain(&self.args).chain(self.env.values())
    }

    /// Other systems whose addresses or ports it refers to, in order, each once.
    pub fn referenced_systems(&self) -> Vec<String> {
        let named = self.texts().flat_map(Template::references);
        let mut told = Vec::new();
        for name in named.filter_map(Reference::system) {
            if name != self.name && !told.iter().any(|known| known == name) {
                told.push(name.to_owned());
            }
        }
        told
    }
}

fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// The form that the file uses: references in braces, other braces doubled.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            match segment {
                Segment::Text(text) => f.write_str(&doubled(text))?,
                Segment::Reference(reference) => write!(f, "{{{reference}}}")?,
                Segment::Variable(variable) => write!(f, "{{{variable}}}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnPort => f.write_str("port"),
            Self::OwnAddr => f.write_str("addr"),
            Self::Work => f.write_str("work"),
            Self::OwnDisk => f.write_str("disk"),
            Self::Index => f.write_str("index"),
            Self::Port(system) => write!(f, "{system}.port"),
            Self::Addr(system) => write!(f, "{system}.addr"),
            Self::OwnFurther(form, name) => write!(f, "{}.{name}", form.word()),
            Self::Further(form, system, name) => write!(f, "{system}.{}.{name}", form.word()),
            Self::Kept(name) => f.write_str(name),
            Self::Copy {
                system,
                index,
                form,
                port,
            } => {
                write!(f, "{system}[{index}].{}", form.word())?;
                port.iter().try_for_each(|port| write!(f, ".{port}"))
            }
            Self::All {
                system,
                separator,
                piece,
            } => {
                let separator = if separator == "," { "" } else { separator };
                match piece.0.as_slice() {
                    [
                        Segment::Reference(
                            own @ (Self::OwnPort | Self::OwnAddr | Self::OwnFurther(..)),
                        ),
                    ] => write!(f, "{system}[*{separator}].{own}"),
                    _ => write!(f, "{system}[*{separator}]:{piece}"),
                }
            }
        }
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
