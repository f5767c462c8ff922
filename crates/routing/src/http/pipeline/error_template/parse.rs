//! From a template's text to its parts.

use super::tokens::{Token, tokens};
use super::{Base, ErrorTemplateError, Expr, Function, Node};

/// Actions within each other.
pub(super) const MOST_DEPTH: usize = 32;

/// Names and functions.
const FUNCTIONS: [(&str, Function); 11] = [
    ("eq", Function::Eq),
    ("ne", Function::Ne),
    ("lt", Function::Lt),
    ("le", Function::Le),
    ("gt", Function::Gt),
    ("ge", Function::Ge),
    ("and", Function::And),
    ("or", Function::Or),
    ("not", Function::Not),
    ("len", Function::Len),
    ("index", Function::Index),
];

/// What the template is given.
const FIELDS: [&str; 4] = ["Status", "StatusText", "Message", "Header"];

/// Reads a whole template.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ErrorTemplateError> {
    let mut reader = Reader {
        pieces: pieces(text)?,
        at: 0,
        depth: 0,
        other_dot: 0,
        variables: Vec::new(),
    };
    let (nodes, end) = reader.nodes()?;
    match end {
        None => Ok(nodes),
        Some(end) => Err(ErrorTemplateError::Stray {
            found: end.found,
            line: end.line,
        }),
    }
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Action(Action),
}

/// What stands between braces.
#[derive(Debug, Clone)]
struct Action {
    found: String,
    line: usize,
}

/// The text and the actions of a template, without comments, trimmed as they ask for.
fn pieces(text: &str) -> Result<Vec<Piece>, ErrorTemplateError> {
    let mut pieces = Vec::new();
    let (mut rest, mut trim) = (text, false);
    loop {
        let open = rest.find("{{");
        let mut before = &rest[..open.unwrap_or(rest.len())];
        if trim {
            before = before.trim_start();
        }
        let Some(open) = open else {
            pieces.push(Piece::Text(before.to_owned()));
            return Ok(pieces);
        };
        let line = 1 + text[..text.len() - rest.len() + open].matches('\n').count();
        let mut behind = &rest[open + 2..];
        if let Some(inner) = behind.strip_prefix('-')
            && inner.starts_with(char::is_whitespace)
        {
            before = before.trim_end();
            behind = inner;
        }
        pieces.push(Piece::Text(before.to_owned()));
        let close = close(behind).ok_or(ErrorTemplateError::Open(line))?;
        let mut found = &behind[..close];
        rest = &behind[close + 2..];
        trim = found
            .strip_suffix('-')
            .is_some_and(|inner| inner.ends_with(char::is_whitespace));
        if trim {
            found = &found[..found.len() - 1];
        }
        let found = found.trim().to_owned();
        if !(found.starts_with("/*") && found.ends_with("*/")) {
            pieces.push(Piece::Action(Action { found, line }));
        }
    }
}

/// Where an action closes: not within a text or a comment.
fn close(action: &str) -> Option<usize> {
    if action.trim_start().starts_with("/*") {
        let end = action.find("*/")?;
        return action[end..].find("}}").map(|at| end + at);
    }
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in action.char_indices() {
        match quote {
            Some(open) if c == open && !escaped => quote = None,
            Some('"') => escaped = c == '\\' && !escaped,
            Some(_) => {}
            None if c == '"' || c == '`' => (quote, escaped) = (Some(c), false),
            None if action[at..].starts_with("}}") => return Some(at),
            None => {}
        }
    }
    None
}

struct Reader {
    pieces: Vec<Piece>,
    at: usize,
    depth: usize,
    /// Actions around that change what the dot is.
    other_dot: usize,
    /// Names that are known here.
    variables: Vec<String>,
}

impl Reader {
    /// The parts up to an `else` or `end`, which is given, or to the end.
    fn nodes(&mut self) -> Result<(Vec<Node>, Option<Action>), ErrorTemplateError> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.get(self.at).cloned() {
            self.at += 1;
            match piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) => nodes.push(Node::Text(text)),
                Piece::Action(action) => {
                    let words = tokens(&action.found).ok_or_else(|| wrong(&action))?;
                    match words.first() {
                        Some(Token::Name(name)) if name == "end" || name == "else" => {
                            return Ok((nodes, Some(action)));
                        }
                        _ => nodes.push(self.node(&action, &words)?),
                    }
                }
            }
        }
        Ok((nodes, None))
    }

    fn node(&mut self, action: &Action, words: &[Token]) -> Result<Node, ErrorTemplateError> {
        match words {
            [Token::Name(name), rest @ ..] if matches!(&**name, "if" | "with" | "range") => {
                if self.depth >= MOST_DEPTH {
                    return Err(ErrorTemplateError::Deep(action.line));
                }
                self.depth += 1;
                let known = self.variables.len();
                let node = self.control(action, name, rest);
                self.variables.truncate(known);
                self.depth -= 1;
                node
            }
            words => self
                .whole(words)
                .map(Node::Print)
                .ok_or_else(|| wrong(action)),
        }
    }

    fn control(
        &mut self,
        action: &Action,
        name: &str,
        words: &[Token],
    ) -> Result<Node, ErrorTemplateError> {
        let declared = words.iter().position(|word| *word == Token::Declare);
        let (declared, words) = match declared {
            Some(at) => (&words[..at], &words[at + 1..]),
            None => (&words[..0], words),
        };
        let names = match declared {
            [] => Vec::new(),
            [Token::Variable(one, path)] if path.is_empty() => vec![one.clone()],
            [
                Token::Variable(key, a),
                Token::Comma,
                Token::Variable(one, b),
            ] if a.is_empty() && b.is_empty() && name == "range" => {
                vec![key.clone(), one.clone()]
            }
            _ => return Err(wrong(action)),
        };
        let value = self.whole(words).ok_or_else(|| wrong(action))?;
        self.variables.extend(names.iter().cloned());
        let becomes_dot = name != "if";
        self.other_dot += usize::from(becomes_dot);
        let inner = self.nodes();
        self.other_dot -= usize::from(becomes_dot);
        let (then, end) = inner?;
        let otherwise = self.otherwise(action, end)?;
        Ok(match name {
            "range" => Node::Range {
                over: value,
                names,
                each: then,
                otherwise,
            },
            _ => Node::If {
                value,
                name: names.into_iter().next(),
                becomes_dot,
                then,
                otherwise,
            },
        })
    }

    /// What stands behind `else`, up to the end of an action.
    fn otherwise(
        &mut self,
        of: &Action,
        end: Option<Action>,
    ) -> Result<Vec<Node>, ErrorTemplateError> {
        let unended = || ErrorTemplateError::Unended {
            found: of.found.clone(),
            line: of.line,
        };
        let end = end.ok_or_else(unended)?;
        let words = tokens(&end.found).ok_or_else(|| wrong(&end))?;
        match words.as_slice() {
            [Token::Name(name)] if name == "end" => Ok(Vec::new()),
            [Token::Name(name)] if name == "else" => match self.nodes()? {
                (nodes, Some(end)) if end.found == "end" => Ok(nodes),
                (_, Some(other)) => Err(wrong(&other)),
                (_, None) => Err(unended()),
            },
            // `else if` ends with the action that it belongs to.
            [Token::Name(_), Token::Name(name), ..] if name == "if" || name == "with" => {
                Ok(vec![self.node(&end, &words[1..])?])
            }
            _ => Err(wrong(&end)),
        }
    }

    /// A value that takes all of the words.
    fn whole(&self, words: &[Token]) -> Option<Expr> {
        let mut words = words;
        let value = self.command(&mut words, 0)?;
        words.is_empty().then_some(value)
    }

    /// A function with its arguments, or an operand.
    fn command(&self, words: &mut &[Token], depth: usize) -> Option<Expr> {
        if depth > MOST_DEPTH {
            return None;
        }
        if let [Token::Name(name), rest @ ..] = *words
            && let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| known == name)
        {
            *words = rest;
            let mut arguments = Vec::new();
            while !words.is_empty() && words.first() != Some(&Token::Close) {
                arguments.push(self.operand(words, depth)?);
            }
            let fits = match function {
                Function::Not | Function::Len => arguments.len() == 1,
                Function::And | Function::Or => !arguments.is_empty(),
                Function::Eq | Function::Index => arguments.len() >= 2,
                _ => arguments.len() == 2,
            };
            return fits.then_some(Expr::Call(*function, arguments));
        }
        let value = self.operand(words, depth)?;
        // A method with its argument.
        match value {
            Expr::Path(base, mut path) if path.last().is_some_and(|name| name == "Get") => {
                path.pop();
                let name = self.operand(words, depth)?;
                Some(Expr::Get(Box::new(Expr::Path(base, path)), Box::new(name)))
            }
            value => Some(value),
        }
    }

    fn operand(&self, words: &mut &[Token], depth: usize) -> Option<Expr> {
        let (first, rest) = words.split_first()?;
        *words = rest;
        Some(match first {
            Token::Text(text) => Expr::Text(text.clone()),
            Token::Number(number) => Expr::Number(*number),
            Token::Name(name) if name == "true" => Expr::Truth(true),
            Token::Name(name) if name == "false" => Expr::Truth(false),
            Token::Field(path) => {
                // Within `with` and `range` the dot is something else.
                if self.other_dot == 0 && !is_given(path) {
                    return None;
                }
                Expr::Path(Base::Dot, path.clone())
            }
            Token::Variable(name, path) if name.is_empty() => {
                is_given(path).then(|| Expr::Path(Base::Root, path.clone()))?
            }
            Token::Variable(name, path) => {
                let known = self.variables.contains(name);
                known.then(|| Expr::Path(Base::Variable(name.clone()), path.clone()))?
            }
            Token::Open => {
                let value = self.command(words, depth + 1)?;
                let (close, rest) = words.split_first()?;
                *words = rest;
                (*close == Token::Close).then_some(value)?
            }
            _ => return None,
        })
    }
}

/// Whether the template is given what a path names.
fn is_given(path: &[String]) -> bool {
    match path {
        [] => true,
        [name] => FIELDS.contains(&&**name),
        [name, get] => name == "Header" && get == "Get",
        _ => false,
    }
}

fn wrong(action: &Action) -> ErrorTemplateError {
    ErrorTemplateError::Action {
        found: action.found.clone(),
        line: action.line,
    }
}
