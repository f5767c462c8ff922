//! Reading text with variables.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::cursor::Cursor;
use super::super::expression::Expression;
use super::{DEPTH, EXPRESSION_PREFIX, NodeFact, SOURCE_BYTES, Template, Token};
use crate::agent::PROPERTY;
use crate::model::property::is_name_char;

/// What a variable counts where texts stand for it, in bytes.
const TOKEN_BYTES: usize = 64;

/// Most that stands for one variable of an expression, in bytes.
const EXPRESSION_VARIABLE_BYTES: usize = 16 * 1024;

/// Names of variables that stand for other texts, such as parameters of a technique.
pub type Substitutions = HashMap<String, Template>;

/// A text whose variables cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {message}")]
pub struct TemplateError {
    /// Where in the text.
    pub at: usize,
    /// What was found, what was expected.
    pub message: String,
}

/// Reads a text: a computed value if it begins with `eval:`, else text with variables.
///
/// # Errors
/// Where it is wrong and what was expected; a text that is too long or nested too deep.
pub fn parse(text: &str, substitutions: &Substitutions) -> Result<Template, TemplateError> {
    if text.len() > SOURCE_BYTES {
        return Err(TemplateError {
            at: SOURCE_BYTES,
            message: format!("the text is longer than {SOURCE_BYTES} bytes"),
        });
    }
    if let Some(source) = text.strip_prefix(EXPRESSION_PREFIX) {
        let expression = Expression::parse(source, substitutions).map_err(|mut error| {
            error.at += EXPRESSION_PREFIX.len();
            error
        })?;
        return Ok(vec![Token::Expression(Arc::new(expression))]);
    }
    if text.starts_with("evaljs:") {
        return Err(TemplateError {
            at: 0,
            message: "JavaScript is not run here; write the value as eval: EXPRESSION".into(),
        });
    }
    let mut reader = Reader {
        cursor: Cursor { text, at: 0 },
        substitutions,
        substituted: 0,
    };
    let tokens = reader.tokens("", 0)?;
    Ok(joined(tokens))
}

/// Reads one variable that begins at `at`, for expressions; gives where it ends.
pub(in crate::policy) fn variable_at(
    text: &str,
    at: usize,
    substitutions: &Substitutions,
) -> Result<(Template, usize), TemplateError> {
    let mut reader = Reader {
        cursor: Cursor { text, at },
        substitutions,
        // An expression may have thousands of variables: each may stand for little.
        substituted: SOURCE_BYTES - EXPRESSION_VARIABLE_BYTES,
    };
    let mut tokens = Vec::new();
    reader.variable(&mut tokens, 0)?;
    Ok((joined(tokens), reader.cursor.at))
}

/// Neighbouring texts as one.
fn joined(tokens: Template) -> Template {
    let mut all = Template::with_capacity(tokens.len());
    let mut text = String::new();
    for token in tokens {
        match token {
            Token::Text(more) => text.push_str(&more),
            other => {
                if !text.is_empty() {
                    all.push(Token::Text(std::mem::take(&mut text).into()));
                }
                all.push(other);
            }
        }
    }
    if !text.is_empty() {
        all.push(Token::Text(text.into()));
    }
    all
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    substitutions: &'t Substitutions,
    /// Bytes that came from substitutions: they must not grow without bound.
    substituted: usize,
}

impl<'t> Reader<'t> {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, TemplateError> {
        self.cursor.wrong(message)
    }

    /// Takes spaces, a mark, and spaces.
    fn mark(&mut self, mark: &str) -> bool {
        let start = self.cursor.at;
        self.cursor.space();
        if self.cursor.word(mark) {
            self.cursor.space();
            return true;
        }
        self.cursor.at = start;
        false
    }

    /// Text and variables up to `quote`, or to the end if it is empty.
    fn tokens(&mut self, quote: &str, depth: usize) -> Result<Template, TemplateError> {
        let mut tokens = Vec::new();
        loop {
            let rest = self.cursor.rest();
            let variable = rest.find("${");
            let end = (!quote.is_empty()).then(|| rest.find(quote)).flatten();
            let text_end = match (variable, end) {
                (Some(variable), Some(end)) => variable.min(end),
                (found, other) => found.or(other).unwrap_or(rest.len()),
            };
            if text_end > 0 {
                tokens.push(Token::Text(rest[..text_end].into()));
                self.cursor.at += text_end;
            }
            if end == Some(text_end) {
                return Ok(tokens);
            }
            if self.cursor.rest().is_empty() {
                if quote.is_empty() {
                    return Ok(tokens);
                }
                return self.wrong(format!("the text ends where {quote} was expected"));
            }
            self.variable(&mut tokens, depth)?;
        }
    }

    /// One variable, at `${`.
    fn variable(&mut self, tokens: &mut Template, depth: usize) -> Result<(), TemplateError> {
        if depth > DEPTH {
            return self.wrong(format!("defaults are nested deeper than {DEPTH}"));
        }
        let start = self.cursor.at;
        self.cursor.at += 2;
        self.cursor.space();
        let name_at = self.cursor.at;
        let token = if self.cursor.word("rudder") && self.mark(".") {
            Some(self.of_server()?)
        } else if self.back_to(name_at).word("node")
            && self.mark(".")
            && self.cursor.word("properties")
        {
            self.property(depth)?
        } else if (self.back_to(name_at).word("rudder-data") || self.back_to(name_at).word("data"))
            && self.mark(".")
        {
            return self.wrong(
                "no engine of this name is known; expected ${node.properties[NAME]}, \
                 ${rudder.node.FACT} or ${rudder.param.NAME}",
            );
        } else {
            return self.of_agent(start, name_at, tokens);
        };
        self.cursor.space();
        if !self.cursor.word("}") {
            return self.wrong("expected } at the end of the variable");
        }
        tokens.push(match token {
            Some(token) => token,
            // `| node`: the agent looks it up, who knows it by how it usually begins.
            None => {
                let written = &self.cursor.text[name_at..self.cursor.at];
                let keys = &written[written.find('[').unwrap_or_default()..];
                Token::Text(format!("{PROPERTY}{keys}").into())
            }
        });
        Ok(())
    }

    fn back_to(&mut self, at: usize) -> &mut Cursor<'t> {
        self.cursor.at = at;
        &mut self.cursor
    }

    /// A variable that the server does not know: a substitution, or the agent's own.
    fn of_agent(
        &mut self,
        start: usize,
        name_at: usize,
        tokens: &mut Template,
    ) -> Result<(), TemplateError> {
        self.cursor.at = name_at;
        let Some(end) = self.cursor.rest().find('}') else {
            self.cursor.at = self.cursor.text.len();
            tokens.push(Token::Text(self.cursor.text[start..].into()));
            return Ok(());
        };
        let name = self.cursor.rest()[..end].trim();
        self.cursor.at = name_at + end + 1;
        match self.substitutions.get(name) {
            Some(replaced) => {
                let bytes = replaced.iter().map(|token| match token {
                    Token::Text(text) => text.len(),
                    _ => TOKEN_BYTES,
                });
                self.substituted += bytes.sum::<usize>();
                if self.substituted > SOURCE_BYTES {
                    return self.wrong("the values that stand for variables are too long here");
                }
                tokens.extend_from_slice(replaced);
            }
            None => tokens.push(Token::Text(self.cursor.text[start..self.cursor.at].into())),
        }
        Ok(())
    }

    /// After `rudder.`
    fn of_server(&mut self) -> Result<Token, TemplateError> {
        let start = self.cursor.at;
        if self.cursor.word("node") && self.mark(".") {
            let mut path = vec![self.identifier()?.to_ascii_lowercase()];
            while self.mark(".") {
                path.push(self.identifier()?.to_ascii_lowercase());
            }
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let fact = match path[..] {
                ["id"] => NodeFact::Id,
                ["hostname"] => NodeFact::Hostname,
                ["admin"] => NodeFact::Admin,
                ["state"] => NodeFact::State,
                ["policymode"] => NodeFact::PolicyMode,
                ["policyserver", "id"] => NodeFact::ServerId,
                ["policyserver", "hostname"] => NodeFact::ServerHostname,
                ["policyserver", "admin"] => NodeFact::ServerAdmin,
                _ => {
                    self.cursor.at = start;
                    return self.wrong(format!(
                        "unknown variable rudder.node.{}; expected id, hostname, admin, state, \
                         policymode, or policyserver. and id, hostname or admin",
                        path.join(".")
                    ));
                }
            };
            return Ok(Token::Fact(fact));
        }
        if self.back_to(start).word("parameters") {
            return Ok(Token::Parameter(self.keys()?));
        }
        if self.back_to(start).word("param") && self.mark(".") {
            let name = self.name()?;
            return Ok(Token::Parameter([name].into()));
        }
        self.cursor.at = start;
        self.wrong("expected node.FACT, param.NAME or parameters[NAME] after rudder.")
    }

    /// After `node.properties`; none if the agent looks it up.
    fn property(&mut self, depth: usize) -> Result<Option<Token>, TemplateError> {
        let path = self.keys()?;
        let mut default = None;
        if self.mark("|") {
            if self.cursor.word("node") {
                return Ok(None);
            }
            if !(self.cursor.word("default") && self.mark("=")) {
                return self.wrong("expected default = TEXT, or node, after |");
            }
            default = Some(joined(self.default(depth)?).into());
        }
        Ok(Some(Token::Property { path, default }))
    }

    /// After `default =`: a quoted text, or one variable.
    fn default(&mut self, depth: usize) -> Result<Template, TemplateError> {
        for quote in ["\"\"\"", "\""] {
            if self.cursor.word(quote) {
                let tokens = self.tokens(quote, depth + 1)?;
                self.cursor.at += quote.len();
                return Ok(tokens);
            }
        }
        if self.cursor.rest().starts_with("${") {
            let mut tokens = Vec::new();
            self.variable(&mut tokens, depth + 1)?;
            return Ok(tokens);
        }
        self.wrong("expected a text in quotes, or a variable, after default =")
    }

    /// `[name][key]…`, at least one.
    fn keys(&mut self) -> Result<Arc<[Arc<str>]>, TemplateError> {
        let mut keys = Vec::new();
        while self.mark("[") {
            keys.push(self.name()?);
            self.cursor.space();
            if !self.cursor.word("]") {
                return self.wrong("expected ] after the name");
            }
        }
        if keys.is_empty() {
            return self.wrong("expected [NAME]");
        }
        Ok(keys.into())
    }

    fn name(&mut self) -> Result<Arc<str>, TemplateError> {
        match self.cursor.run(is_name_char) {
            "" => self.wrong("expected a name without spaces and \" $ { } [ ]"),
            name => Ok(name.into()),
        }
    }

    fn identifier(&mut self) -> Result<&'t str, TemplateError> {
        let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        match self.cursor.run(part) {
            "" => self.wrong("expected a name of letters, digits, - and _"),
            name => Ok(name),
        }
    }
}
