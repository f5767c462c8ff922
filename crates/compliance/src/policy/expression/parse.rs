//! Reading expressions.

use super::super::cursor::Cursor;
use super::super::template::{Substitutions, TemplateError, variable_at};
use super::functions::Function;
use super::{DEPTH, Expression, Node, OPERATORS, Operator, Pattern, SOURCE_BYTES};
use crate::model::query::value::full_match;

/// Operators of two sides, from those that bind least; none is the start of a later one of its
/// row.
const BINARY: [&[(&str, Operator)]; 3] = [
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Where it is wrong and what was expected; one that is too long or nested too deep.
    pub fn parse(source: &str, substitutions: &Substitutions) -> Result<Self, TemplateError> {
        let mut reader = Reader {
            cursor: Cursor {
                text: source,
                at: 0,
            },
            depth: 0,
            operators: 0,
            substitutions,
        };
        if source.len() > SOURCE_BYTES {
            return reader.wrong(format!("an expression has at most {SOURCE_BYTES} bytes"));
        }
        let root = reader.choice()?;
        reader.cursor.space();
        if reader.cursor.at < source.len() {
            return reader.wrong("expected an operator, or the end of the expression");
        }
        Ok(Self { root })
    }
}

struct Reader<'s> {
    cursor: Cursor<'s>,
    depth: usize,
    operators: usize,
    substitutions: &'s Substitutions,
}

type Read = Result<Node, TemplateError>;

impl Reader<'_> {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, TemplateError> {
        self.cursor.wrong(message)
    }

    fn take(&mut self, mark: &str) -> bool {
        self.cursor.space();
        self.cursor.word(mark)
    }

    fn expect(&mut self, mark: &str) -> Result<(), TemplateError> {
        if self.take(mark) {
            return Ok(());
        }
        self.wrong(format!("expected {mark}"))
    }

    fn operator(&mut self) -> Result<(), TemplateError> {
        self.operators += 1;
        if self.operators > OPERATORS {
            return self.wrong(format!("an expression has at most {OPERATORS} operators"));
        }
        Ok(())
    }

    fn choice(&mut self) -> Read {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.wrong(format!("the expression is nested deeper than {DEPTH}"));
        }
        let condition = self.either()?;
        let node = if self.take("?") {
            let then = self.choice()?;
            self.expect(":")?;
            let other = self.choice()?;
            Node::Choice(Box::new([condition, then, other]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn either(&mut self) -> Read {
        let mut left = self.both()?;
        while self.take("||") {
            self.operator()?;
            left = Node::Or(Box::new([left, self.both()?]));
        }
        Ok(left)
    }

    fn both(&mut self) -> Read {
        let mut left = self.binary(0)?;
        while self.take("&&") {
            self.operator()?;
            left = Node::And(Box::new([left, self.binary(0)?]));
        }
        Ok(left)
    }

    fn binary(&mut self, row: usize) -> Read {
        let Some(operators) = BINARY.get(row) else {
            return self.unary();
        };
        let mut left = self.binary(row + 1)?;
        loop {
            let found = operators.iter().find(|(mark, _)| self.take(mark));
            let Some(&(_, operator)) = found else {
                return Ok(left);
            };
            self.operator()?;
            left = Node::Binary(operator, Box::new([left, self.binary(row + 1)?]));
            // `a < b < c` means nothing.
            if row == 0 {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Read {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.wrong(format!("the expression is nested deeper than {DEPTH}"));
        }
        let node = if self.take("!") {
            Node::Not(Box::new(self.unary()?))
        } else if self.take("-") {
            Node::Negative(Box::new(self.unary()?))
        } else {
            let mut node = self.primary()?;
            while self.take("[") {
                self.operator()?;
                let index = self.choice()?;
                self.expect("]")?;
                node = Node::Index(Box::new([node, index]));
            }
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn primary(&mut self) -> Read {
        self.cursor.space();
        let rest = self.cursor.rest();
        match rest.chars().next() {
            None => self.wrong("the expression ends where a value was expected"),
            Some('(') => {
                self.cursor.at += 1;
                let node = self.choice()?;
                self.expect(")")?;
                Ok(node)
            }
            Some('[') => {
                self.cursor.at += 1;
                Ok(Node::List(self.list("]")?))
            }
            Some(quote @ ('"' | '\'')) => self.text(quote),
            Some('$') if rest.starts_with("${") => {
                let (tokens, end) =
                    variable_at(self.cursor.text, self.cursor.at, self.substitutions)?;
                self.cursor.at = end;
                Ok(Node::Variable(tokens))
            }
            Some(digit) if digit.is_ascii_digit() => {
                let start = self.cursor.at;
                let digits = self.cursor.run(|letter| letter.is_ascii_digit());
                digits.parse().map(Node::Integer).or_else(|_| {
                    self.cursor.at = start;
                    self.wrong("a number is below 2^63")
                })
            }
            Some(_) => self.word(),
        }
    }

    fn word(&mut self) -> Read {
        let start = self.cursor.at;
        let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let word = self.cursor.run(part);
        match word {
            "" => return self.wrong("expected a value"),
            "true" | "false" => return Ok(Node::Boolean(word == "true")),
            _ => {}
        }
        if !self.take("(") {
            self.cursor.at = start;
            return self.wrong(format!(
                "\"{word}\" is no value; write texts in quotes and variables as ${{…}}"
            ));
        }
        let mut arguments = self.list(")")?;
        if word == "matches" {
            return match (arguments.pop(), arguments.pop(), arguments.pop()) {
                (Some(Node::Text(pattern)), Some(text), None) => match full_match(&pattern) {
                    Ok(pattern) => Ok(Node::Matches(Box::new(text), Pattern(pattern))),
                    Err(message) => self.wrong(message),
                },
                _ => self.wrong("expected matches(TEXT, \"REGULAR EXPRESSION\")"),
            };
        }
        let Some(function) = Function::named(word) else {
            self.cursor.at = start;
            let hint = units::UnitError::new(0..0, "").meant(word, Function::names());
            let hint = hint.hint();
            return self.wrong(format!("there is no function \"{word}\"{hint}"));
        };
        if !function.arguments().contains(&arguments.len()) {
            self.cursor.at = start;
            let found = arguments.len();
            return self.wrong(format!(
                "{} takes {}, not {found} arguments",
                function.name(),
                function.usage()
            ));
        }
        Ok(Node::Call(function, arguments))
    }

    /// Values up to a mark, after its opening one.
    fn list(&mut self, end: &str) -> Result<Vec<Node>, TemplateError> {
        let mut nodes = Vec::new();
        if self.take(end) {
            return Ok(nodes);
        }
        loop {
            nodes.push(self.choice()?);
            if self.take(end) {
                return Ok(nodes);
            }
            self.expect(",")?;
        }
    }

    /// A quoted text; `\n`, `\t`, `\\` and escaped quotes are known.
    fn text(&mut self, quote: char) -> Read {
        let mut text = String::new();
        let mut letters = self.cursor.rest().char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                _ if letter == quote => {
                    self.cursor.at += at + 1;
                    return Ok(Node::Text(text));
                }
                '\\' => match letters.next().map(|(_, letter)| letter) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(same @ ('\\' | '"' | '\'')) => text.push(same),
                    _ => return self.wrong("expected n, t, \\ or a quote after \\"),
                },
                letter => text.push(letter),
            }
        }
        self.wrong("the text has no end")
    }
}
