//! Expressions as a tree, before any name is looked up.

use std::ops::Range;

use super::Op;
use super::lexer::{Fault, Kind, Token, tokens};

/// Longest expression, in bytes.
const LONGEST: usize = 4096;
/// Deepest nesting of parentheses.
const DEEPEST: usize = 32;

/// What may follow a comparison.
const AFTER_COMPARISON: &str = "and, or, or the end";

/// A word of the text, with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

/// A part of an expression as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Compare(Box<Raw>),
    All(Vec<Tree>),
    Any(Vec<Tree>),
}

/// A comparison as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raw {
    /// `'step name':` before the subject.
    pub(super) step: Option<Word>,
    pub(super) subject: Subject,
    /// Words between the subject and the operator.
    pub(super) stats: Vec<Word>,
    pub(super) op: Op,
    pub(super) quantity: Word,
    /// Whether the quantity is a text in quotes.
    pub(super) is_text: bool,
    /// What stands behind `of`.
    pub(super) of: Option<Of>,
}

/// What a quantity is a share of, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Of {
    /// `planned`
    Word(Word),
    /// Another metric; its quantity and its operator are those of the comparison.
    Metric(Box<Raw>),
}

/// What a comparison is about, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// `a.b.c`, whose last name may be a range: `a.b..c`.
    Path {
        names: Vec<Word>,
        until: Option<Word>,
    },
    /// `name('argument')`, `name(a.b)`.
    Call { name: Word, argument: Argument },
}

/// What stands in the parentheses of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    Quoted(Word),
    /// Names with dots between them; at least one.
    Path(Vec<Word>),
}

impl Argument {
    fn last(&self) -> Option<&Word> {
        match self {
            Self::Quoted(word) => Some(word),
            Self::Path(path) => path.last(),
        }
    }
}

impl Subject {
    pub(super) fn at(&self) -> Range<usize> {
        let (first, last) = match self {
            Self::Path { names, until } => (names.first(), until.as_ref().or(names.last())),
            Self::Call { name, argument } => (Some(name), argument.last()),
        };
        let start = first.map_or(0, |word| word.at.start);
        start..last.map_or(start, |word| word.at.end)
    }
}

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Tree, Fault> {
    parsed(text, AFTER_COMPARISON, |parser| parser.any())
}

/// Parses a metric without a comparison.
pub(super) fn parse_metric(text: &str) -> Result<Raw, Fault> {
    parsed(text, "the end of the metric", |parser| {
        Ok(Raw {
            step: parser.step(),
            subject: parser.subject()?,
            stats: parser.stats(),
            // A metric is looked up without them.
            op: Op::Equal,
            quantity: Word {
                text: String::new(),
                at: text.len()..text.len(),
            },
            of: None,
            is_text: false,
        })
    })
}

fn parsed<T>(
    text: &str,
    expected_behind: &str,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    if text.len() > LONGEST {
        let message = format!(
            "an expression has at most {LONGEST} bytes, this has {}",
            text.len()
        );
        return Err(Fault::new(0..text.len(), message));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        depth: 0,
        end: text.len(),
    };
    let found = read(&mut parser)?;
    match parser.peek() {
        None => Ok(found),
        Some(Token {
            kind: Kind::Close,
            at,
        }) => Err(Fault::new(at.clone(), "this parenthesis was not opened")),
        Some(Token {
            kind: Kind::Op(_),
            at,
        }) if expected_behind == AFTER_COMPARISON => {
            Err(Fault::new(at.clone(), "a comparison has two sides only")
                .help("join two comparisons with and"))
        }
        Some(token) => Err(parser.unexpected(expected_behind, Some(token))),
    }
}

struct Parser<'t> {
    tokens: &'t [Token],
    next: usize,
    depth: usize,
    end: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<&'t Token> {
        let token = self.peek()?;
        self.next += 1;
        Some(token)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token { kind: Kind::Word(w), .. }) if w == word);
        self.next += usize::from(found);
        found
    }

    fn take_kind(&mut self, kind: &Kind) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.next += usize::from(found);
        found
    }

    fn unexpected(&self, expected: &str, found: Option<&Token>) -> Fault {
        match found {
            None => Fault::new(
                self.end..self.end,
                format!("expected {expected}, found the end"),
            ),
            Some(token) => Fault::new(
                token.at.clone(),
                format!("expected {expected}, found {}", found_text(token)),
            ),
        }
    }

    fn any(&mut self) -> Result<Tree, Fault> {
        let mut parts = vec![self.all()?];
        while self.take_word("or") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Tree::Any))
    }

    fn all(&mut self) -> Result<Tree, Fault> {
        let mut parts = vec![self.part()?];
        while self.take_word("and") {
            parts.push(self.part()?);
        }
        Ok(joined(parts, Tree::All))
    }

    fn part(&mut self) -> Result<Tree, Fault> {
        let Some(Token {
            kind: Kind::Open,
            at,
        }) = self.peek()
        else {
            return Ok(Tree::Compare(Box::new(self.comparison()?)));
        };
        if self.depth == DEEPEST {
            let message = format!("parentheses nest at most {DEEPEST} deep");
            return Err(Fault::new(at.clone(), message));
        }
        self.next += 1;
        self.depth += 1;
        let tree = self.any()?;
        self.depth -= 1;
        match self.take_kind(&Kind::Close) {
            true => Ok(tree),
            false => Err(self.unexpected("a closing parenthesis", self.peek())),
        }
    }

    fn comparison(&mut self) -> Result<Raw, Fault> {
        let step = self.step();
        let subject = self.subject()?;
        let stats = self.stats();
        let op = match self.peek() {
            Some(Token {
                kind: Kind::Op(op), ..
            }) => *op,
            other => return Err(self.unexpected("==, !=, <, <=, > or >=", other)),
        };
        self.next += 1;
        let text = self.text();
        let is_text = text.is_some();
        let quantity = match text {
            Some(text) => text,
            None => self.quantity()?,
        };
        let of = match self.take_word("of") {
            true => Some(self.of(op, &quantity)?),
            false => None,
        };
        Ok(Raw {
            step,
            subject,
            stats,
            op,
            quantity,
            is_text,
            of,
        })
    }

    /// A text in quotes.
    fn text(&mut self) -> Option<Word> {
        let Some(Token {
            kind: Kind::Quoted(text),
            at,
        }) = self.peek()
        else {
            return None;
        };
        self.next += 1;
        Some(Word {
            text: text.clone(),
            at: at.clone(),
        })
    }

    /// Words between a subject and what follows it.
    fn stats(&mut self) -> Vec<Word> {
        let mut stats = Vec::new();
        while let Some(Token {
            kind: Kind::Word(word),
            at,
        }) = self.peek()
            && !is_joint(word)
        {
            self.next += 1;
            stats.push(Word {
                text: word.clone(),
                at: at.clone(),
            });
        }
        stats
    }

    /// What stands behind `of`: a word alone, or another metric.
    fn of(&mut self, op: Op, quantity: &Word) -> Result<Of, Fault> {
        let step = self.step();
        let subject = self.subject()?;
        let stats = self.stats();
        Ok(match &subject {
            Subject::Path { names, until: None }
                if names.len() == 1 && step.is_none() && stats.is_empty() =>
            {
                Of::Word(names[0].clone())
            }
            _ => Of::Metric(Box::new(Raw {
                step,
                subject,
                stats,
                op,
                quantity: quantity.clone(),
                is_text: false,
                of: None,
            })),
        })
    }

    /// The name of a step before a colon; quotes can be left out around one word.
    fn step(&mut self) -> Option<Word> {
        let Some(Token {
            kind: Kind::Word(text) | Kind::Quoted(text),
            at,
        }) = self.peek()
        else {
            return None;
        };
        let after = self.tokens.get(self.next + 1);
        if !matches!(after, Some(token) if token.kind == Kind::Colon) {
            return None;
        }
        self.next += 2;
        Some(Word {
            text: text.clone(),
            at: at.clone(),
        })
    }

    fn subject(&mut self) -> Result<Subject, Fault> {
        let expected = "a metric such as task.complete";
        let first = match self.peek() {
            Some(Token {
                kind: Kind::Word(word),
                ..
            }) if !is_joint(word) => self.name(expected)?,
            Some(
                token @ Token {
                    kind: Kind::Quantity(_),
                    ..
                },
            ) => {
                return Err(self
                    .unexpected(expected, Some(token))
                    .help("the metric stands on the left side, the quantity on the right"));
            }
            other => return Err(self.unexpected(expected, other)),
        };
        if self.take_kind(&Kind::Open) {
            let argument = self.argument()?;
            return match self.take_kind(&Kind::Close) {
                true => Ok(Subject::Call {
                    name: first,
                    argument,
                }),
                false => Err(self.unexpected("a closing parenthesis", self.peek())),
            };
        }
        let mut names = vec![first];
        loop {
            if self.take_kind(&Kind::Dot) {
                names.push(self.name("a name after the dot")?);
            } else if self.take_kind(&Kind::Dots) {
                let until = Some(self.name("the point that ends the interval")?);
                return Ok(Subject::Path { names, until });
            } else {
                return Ok(Subject::Path { names, until: None });
            }
        }
    }

    fn argument(&mut self) -> Result<Argument, Fault> {
        if let Some(text) = self.text() {
            return Ok(Argument::Quoted(text));
        }
        let mut path = vec![self.name("a name, or one in quotes")?];
        while self.take_kind(&Kind::Dot) {
            path.push(self.name("a name after the dot")?);
        }
        Ok(Argument::Path(path))
    }

    fn name(&mut self, expected: &str) -> Result<Word, Fault> {
        match self.take() {
            Some(Token {
                kind: Kind::Word(text),
                at,
            }) => Ok(Word {
                text: text.clone(),
                at: at.clone(),
            }),
            other => Err(self.unexpected(expected, other)),
        }
    }

    /// A number with its unit; one space may stand between the two.
    fn quantity(&mut self) -> Result<Word, Fault> {
        let mut quantity = match self.take() {
            Some(Token {
                kind: Kind::Quantity(text),
                at,
            }) => Word {
                text: text.clone(),
                at: at.clone(),
            },
            other => return Err(self.unexpected("a quantity such as 30s", other)),
        };
        let begins_a_metric = matches!(
            self.tokens.get(self.next + 1),
            Some(Token {
                kind: Kind::Dot | Kind::Dots | Kind::Open,
                ..
            })
        );
        if let Some(Token {
            kind: Kind::Word(unit),
            at,
        }) = self.peek()
            && !is_joint(unit)
            && unit != "of"
            && !begins_a_metric
        {
            self.next += 1;
            quantity.text += unit;
            quantity.at.end = at.end;
        }
        Ok(quantity)
    }
}

/// Does this word join comparisons?
fn is_joint(word: &str) -> bool {
    matches!(word, "and" | "or")
}

fn joined(mut parts: Vec<Tree>, join: fn(Vec<Tree>) -> Tree) -> Tree {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn found_text(token: &Token) -> String {
    match &token.kind {
        Kind::Word(text) | Kind::Quantity(text) => format!("\"{text}\""),
        Kind::Quoted(text) => format!("'{text}'"),
        Kind::Op(_) => "a comparison".to_owned(),
        Kind::Dot => "a dot".to_owned(),
        Kind::Dots => "two dots".to_owned(),
        Kind::Open => "(".to_owned(),
        Kind::Close => ")".to_owned(),
        Kind::Colon => "a colon".to_owned(),
    }
}
