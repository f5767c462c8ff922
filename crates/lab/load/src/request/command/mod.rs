//! Commands of Redis: words as `redis-cli` reads them, written as RESP has them.
//!
//! Each word stands in the request with its length before it, so a value that is put into one
//! can neither leave its place nor add others.

use std::io::Write as _;

use units::UnitError;

use super::compile::Compiler;
use super::compiled::{Context, Escape, Piece, Template};
use super::error::RequestError;
use super::template::{self, Part};
use super::{Body, Step};

/// Most words of a command; a server takes 1,048,576 unless told otherwise.
const MOST_WORDS: usize = 100_000;

/// Commands that change what a connection is for those after them, or that have another number
/// of replies than one. Connections are shared by requests, so these would falsify all others.
const OF_CONNECTIONS: [&str; 22] = [
    "ASKING",
    "AUTH",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "PUNSUBSCRIBE",
    "QUIT",
    "READONLY",
    "READWRITE",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "SUNSUBSCRIBE",
    "SYNC",
    "UNSUBSCRIBE",
    "UNWATCH",
    "WATCH",
];

/// A command made ready.
#[derive(Debug)]
pub(super) struct Command(Vec<Written>);

/// A part of a command.
#[derive(Debug)]
enum Written {
    /// The same for every arrival.
    Bytes(Vec<u8>),
    /// A word that varies.
    Word(Template),
}

impl Command {
    fn new(words: Vec<Template>) -> Self {
        let mut head = Vec::new();
        number(b'*', words.len(), &mut head);
        let mut command = Self(vec![Written::Bytes(head)]);
        for template in words {
            match (template.constant(), command.0.last_mut()) {
                (Some(bytes), Some(Written::Bytes(before))) => word(bytes, before),
                (Some(bytes), _) => {
                    let mut written = Vec::new();
                    word(bytes, &mut written);
                    command.0.push(Written::Bytes(written));
                }
                (None, _) => command.0.push(Written::Word(template)),
            }
        }
        command
    }

    /// Whether it is the same for every arrival.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self.0.as_slice(), [Written::Bytes(_)])
    }

    /// Appends the command for this context.
    pub(super) fn write(&self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        for part in &self.0 {
            match part {
                Written::Bytes(bytes) => out.extend_from_slice(bytes),
                Written::Word(template) => {
                    // The length stands before the word, which is written first and then
                    // changes places with it.
                    let start = out.len();
                    template.write(context, out)?;
                    let length = out.len() - start;
                    number(b'$', length, out);
                    out[start..].rotate_left(length);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        Ok(())
    }
}

/// Appends a command of these words, as RESP has it.
pub fn redis_command(words: &[&str], out: &mut Vec<u8>) {
    number(b'*', words.len(), out);
    words.iter().for_each(|text| word(text.as_bytes(), out));
}

fn word(bytes: &[u8], out: &mut Vec<u8>) {
    number(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn number(kind: u8, number: usize, out: &mut Vec<u8>) {
    out.push(kind);
    // Writing into a vector cannot fail.
    let _ = write!(out, "{number}\r\n");
}

impl Compiler<'_> {
    /// The command of a step.
    pub(super) fn command(&mut self, step: &Step) -> Result<Command, RequestError> {
        let place = || format!("step \"{}\", command", step.name);
        let text = match &step.body {
            Body::Template(text) => text,
            Body::Empty => "",
            Body::Bytes(_) => {
                let message = "a command of Redis is text, not a file";
                return Err(RequestError::new(
                    place(),
                    "",
                    UnitError::new(0..0, message),
                ));
            }
        };
        let words = self.words(text);
        let command = words.and_then(|words| {
            check_name(text, &words)?;
            Ok(Command::new(words))
        });
        command.map_err(|fault| RequestError::new(place(), text, fault))
    }

    fn words(&mut self, text: &str) -> Result<Vec<Template>, UnitError> {
        let mut words = Words::default();
        for part in template::split(text)? {
            match part {
                Part::Text(literal, at) => {
                    for letter in literal.chars() {
                        words
                            .take(letter)
                            .map_err(|message| UnitError::new(at.clone(), message))?;
                    }
                }
                Part::Variable(at) => {
                    let piece = self.variable(text, at, Escape::None)?;
                    words
                        .push(piece)
                        .map_err(|message| UnitError::new(0..text.len(), message))?;
                }
            }
        }
        let words = words
            .end()
            .map_err(|message| UnitError::new(0..text.len(), message))?;
        match words.len() {
            1..=MOST_WORDS => Ok(words),
            0 => {
                let message = "a request of Redis is a command, such as GET key:{uniform 0 1000}";
                Err(UnitError::new(0..text.len(), message))
            }
            found => {
                let message = format!("a command has at most {MOST_WORDS} words, found {found}");
                Err(UnitError::new(0..text.len(), message))
            }
        }
    }
}

/// Says what is wrong with the name that a command begins with.
fn check_name(text: &str, words: &[Template]) -> Result<(), UnitError> {
    let start = text.len() - text.trim_start().len();
    let end = text[start..]
        .find(char::is_whitespace)
        .map_or(text.len(), |length| start + length);
    let constant = |index: usize| {
        let word = words.get(index)?.constant()?;
        Some(String::from_utf8_lossy(word).to_ascii_uppercase())
    };
    let Some(name) = constant(0) else {
        return Err(UnitError::new(
            start..end,
            "a command begins with its name, not with a variable",
        ));
    };
    let of_connection = OF_CONNECTIONS.contains(&name.as_str())
        || (name == "CLIENT" && constant(1).is_some_and(|second| second == "REPLY"));
    if !of_connection {
        return Ok(());
    }
    let message = match name.as_str() {
        "AUTH" | "HELLO" | "SELECT" => {
            "each connection says this by itself: the URL names user and database, and the \
             password comes from REDISCLI_AUTH or a file"
        }
        "MULTI" | "EXEC" | "DISCARD" | "WATCH" | "UNWATCH" => {
            "requests share connections, so a transaction cannot be several of them; EVAL does \
             several things at once"
        }
        _ => "this changes the connection for the requests after it, or has no reply of its own",
    };
    Err(UnitError::new(start..end, message))
}

/// Splits a command into words: at spaces, but for those within quotes. `"…"` knows `\n`, `\r`,
/// `\t`, `\\`, `\"` and `\xHH`; `'…'` knows `\'`.
#[derive(Default)]
struct Words {
    done: Vec<Template>,
    word: Option<Template>,
    bytes: Vec<u8>,
    at: Quote,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
    /// Behind a backslash, within these quotes.
    Escaped(bool),
    /// Behind `\x`, after so many digits with this value.
    Hex(u8, u8),
}

impl Words {
    fn take(&mut self, letter: char) -> Result<(), &'static str> {
        let next = match (self.at, letter) {
            (Quote::None, letter) if letter.is_whitespace() => {
                self.end_word();
                Quote::None
            }
            (Quote::None, '"') => self.begin(Quote::Double),
            (Quote::None, '\'') => self.begin(Quote::Single),
            (Quote::Single, '\'') | (Quote::Double, '"') => Quote::None,
            (Quote::Single, '\\') => Quote::Escaped(false),
            (Quote::Double, '\\') => Quote::Escaped(true),
            (Quote::Escaped(true), 'x') => Quote::Hex(0, 0),
            (Quote::Escaped(true), letter) => {
                let meant = match letter {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '\\' | '"' => letter,
                    _ => return Err("unknown escape; there are \\n \\r \\t \\\\ \\\" \\xHH"),
                };
                self.push_letter(meant);
                Quote::Double
            }
            (Quote::Escaped(false), '\'') => {
                self.push_letter('\'');
                Quote::Single
            }
            (Quote::Escaped(false), letter) => {
                self.push_letter('\\');
                self.push_letter(letter);
                Quote::Single
            }
            (Quote::Hex(digits, value), letter) => {
                let digit = letter
                    .to_digit(16)
                    .ok_or("\\x is followed by two hexadecimal digits")?;
                let value = value << 4 | digit as u8;
                match digits {
                    0 => Quote::Hex(1, value),
                    _ => {
                        self.bytes.push(value);
                        Quote::Double
                    }
                }
            }
            (quote, letter) => {
                self.push_letter(letter);
                quote
            }
        };
        self.at = next;
        Ok(())
    }

    fn begin(&mut self, quote: Quote) -> Quote {
        // Quotes without anything between them are a word too.
        self.word.get_or_insert_default();
        quote
    }

    fn push_letter(&mut self, letter: char) {
        self.word.get_or_insert_default();
        let mut utf8 = [0; 4];
        self.bytes
            .extend_from_slice(letter.encode_utf8(&mut utf8).as_bytes());
    }

    fn push(&mut self, piece: Piece) -> Result<(), &'static str> {
        if matches!(self.at, Quote::Escaped(_) | Quote::Hex(..)) {
            return Err("a variable cannot be escaped");
        }
        let text = Piece::Text(std::mem::take(&mut self.bytes));
        let word = self.word.get_or_insert_default();
        word.push(text);
        word.push(piece);
        Ok(())
    }

    fn end_word(&mut self) {
        if let Some(mut word) = self.word.take() {
            word.push(Piece::Text(std::mem::take(&mut self.bytes)));
            self.done.push(word);
        }
    }

    fn end(mut self) -> Result<Vec<Template>, &'static str> {
        match self.at {
            Quote::None => {
                self.end_word();
                Ok(self.done)
            }
            _ => Err("a quote is not closed"),
        }
    }
}

#[cfg(test)]
mod tests;
