//! The words of an action.

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// `.A.B`: its names; `.` has none.
    Field(Vec<String>),
    /// `$name.A.B`: its name, which may be empty, and those behind it.
    Variable(String, Vec<String>),
    /// A keyword or a function.
    Name(String),
    Text(String),
    Number(i64),
    Open,
    Close,
    Comma,
    /// `:=`
    Declare,
}

/// The words of an action; `None`: something in it is none.
pub(super) fn tokens(mut rest: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Some(tokens);
        };
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            ':' if rest.starts_with(":=") => (Token::Declare, 2),
            '"' => quoted(rest)?,
            '`' => {
                let end = rest[1..].find('`')?;
                (Token::Text(rest[1..=end].to_owned()), end + 2)
            }
            '.' => {
                let length = path_length(rest);
                (Token::Field(names(&rest[..length])?), length)
            }
            '$' => {
                let name = 1 + word_length(&rest[1..]);
                let length = name + path_length(&rest[name..]);
                let behind = match length > name {
                    true => names(&rest[name..length])?,
                    false => Vec::new(),
                };
                (Token::Variable(rest[1..name].to_owned(), behind), length)
            }
            '-' | '0'..='9' => {
                let length = 1 + rest[1..]
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len() - 1);
                (Token::Number(rest[..length].parse().ok()?), length)
            }
            c if c.is_alphabetic() || c == '_' => {
                let length = word_length(rest);
                (Token::Name(rest[..length].to_owned()), length)
            }
            _ => return None,
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

/// A text in quotes, which JSON escapes nearly as Go does, and its length.
fn quoted(rest: &str) -> Option<(Token, usize)> {
    let mut escaped = false;
    let end = rest[1..].find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let length = end + 2;
    let text = serde_json::from_str(&rest[..length]).ok()?;
    Some((Token::Text(text), length))
}

fn word_length(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    end.unwrap_or(text.len())
}

fn path_length(text: &str) -> usize {
    if !text.starts_with('.') {
        return 0;
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    end.unwrap_or(text.len())
}

/// The names of `.A.B`; of `.` none.
fn names(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('.')?;
    if path.is_empty() {
        return Some(Vec::new());
    }
    path.split('.')
        .map(|name| (!name.is_empty()).then(|| name.to_owned()))
        .collect()
}
