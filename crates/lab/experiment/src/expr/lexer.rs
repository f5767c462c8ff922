//! Expressions as tokens.

use std::ops::Range;

use super::Op;

/// A token and the bytes it takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

/// Kinds of token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A name or a key word.
    Word(String),
    /// A number, with its sign, and its unit when that follows at once: `30s`, `99.9%`, `-5%`.
    Quantity(String),
    /// Text in quotes, without them.
    Quoted(String),
    /// A comparison.
    Op(Op),
    /// `.`
    Dot,
    /// `..`
    Dots,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `:`
    Colon,
}

/// A problem at some bytes of the expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) suggestion: Option<String>,
}

impl Fault {
    pub(super) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            help: None,
            suggestion: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Can this character stand in a name?
pub(crate) fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Splits an expression into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (kind, used) = token(text, at, c)?;
        tokens.push(Token {
            kind,
            at: at..at + used,
        });
        at += used;
    }
    Ok(tokens)
}

/// The token at `at`, which begins with `c`, and its length.
fn token(text: &str, at: usize, c: char) -> Result<(Kind, usize), Fault> {
    let rest = &text[at..];
    let run = |belongs: fn(char) -> bool| rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    let symbols = [
        ("==", Kind::Op(Op::Equal)),
        ("!=", Kind::Op(Op::NotEqual)),
        ("<=", Kind::Op(Op::LessOrEqual)),
        (">=", Kind::Op(Op::GreaterOrEqual)),
        ("<", Kind::Op(Op::Less)),
        (">", Kind::Op(Op::Greater)),
        ("..", Kind::Dots),
        (".", Kind::Dot),
        ("(", Kind::Open),
        (")", Kind::Close),
        (":", Kind::Colon),
    ];
    if let Some((symbol, kind)) = symbols
        .into_iter()
        .find(|(symbol, _)| rest.starts_with(symbol))
    {
        return Ok((kind, symbol.len()));
    }
    match c {
        c if c.is_ascii_alphabetic() || c == '_' => {
            let used = run(in_name);
            Ok((Kind::Word(rest[..used].to_owned()), used))
        }
        '0'..='9' | '-' if c != '-' || rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let digits = rest.strip_prefix('-').unwrap_or(rest);
            let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '/');
            let used = digits.find(|c| !belongs(c)).unwrap_or(digits.len());
            let used = used + (rest.len() - digits.len());
            Ok((Kind::Quantity(rest[..used].to_owned()), used))
        }
        '\'' | '"' => {
            let length = rest[1..]
                .find(c)
                .ok_or_else(|| Fault::new(at..at + 1, format!("the quote {c} is not closed")))?;
            Ok((Kind::Quoted(rest[1..1 + length].to_owned()), length + 2))
        }
        '=' => {
            let mut fault = Fault::new(at..at + 1, "a single = compares nothing");
            fault.suggestion = Some("==".to_owned());
            Err(fault)
        }
        '-' | '+' => Err(Fault::new(at..at + 1, "a quantity has no sign")),
        '&' | '|' => {
            let used = run(|c| matches!(c, '&' | '|'));
            let mut fault = Fault::new(at..at + used, format!("unexpected {}", &rest[..used]));
            fault.suggestion = Some(if c == '&' { "and" } else { "or" }.to_owned());
            Err(fault)
        }
        c => {
            let message = format!("unexpected character {}", c.escape_debug());
            Err(Fault::new(at..at + c.len_utf8(), message))
        }
    }
}
