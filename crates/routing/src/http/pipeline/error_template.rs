//! The page of error answers, for people in browsers (`html_error_template_file`).

use super::exchange::Exchange;
use super::reason::reason;
use super::text::decimal;

/// A template of Go's `html/template`, of which the fields that gorouter gives it are
/// understood: `{{ .Status }}`, `{{ .StatusText }}`, `{{ .Message }}` and
/// `{{ .Header.Get "X-Cf-RouterError" }}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTemplate(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Status,
    StatusText,
    Message,
    RouterError,
    /// A field that error answers do not have.
    Nothing,
}

/// Why a template is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorTemplateError {
    /// Two braces open and none close.
    #[error("read the error template: found {{{{ in line {0} without }}}} behind it")]
    Open(usize),
    /// An action that is not understood.
    #[error(
        "read the error template: found {{{{ {found} }}}} in line {line}; expected .Status, \
         .StatusText, .Message or .Header.Get \"X-Cf-RouterError\""
    )]
    Action {
        /// What stands between the braces.
        found: String,
        /// Its line.
        line: usize,
    },
}

impl ErrorTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// When it has an action that is not understood.
    pub fn parse(text: &str) -> Result<Self, ErrorTemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let line = 1 + text[..text.len() - rest.len() + open].matches('\n').count();
            pieces.push(Piece::Text(rest[..open].to_owned()));
            let behind = &rest[open + 2..];
            let close = behind.find("}}").ok_or(ErrorTemplateError::Open(line))?;
            let found = behind[..close].trim();
            pieces.push(match found {
                ".Status" => Piece::Status,
                ".StatusText" => Piece::StatusText,
                ".Message" => Piece::Message,
                _ => header(found).ok_or_else(|| ErrorTemplateError::Action {
                    found: found.to_owned(),
                    line,
                })?,
            });
            rest = &behind[close + 2..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Appends the page.
    pub(super) fn write(
        &self,
        status: u16,
        message: &[u8],
        exchange: &Exchange,
        out: &mut Vec<u8>,
    ) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Status => decimal(u64::from(status), out),
                Piece::StatusText => {
                    escape(reason(status).unwrap_or_default().as_bytes(), out);
                }
                Piece::Message => escape(message, out),
                Piece::RouterError => escape(exchange.router_error.as_bytes(), out),
                Piece::Nothing => {}
            }
        }
    }
}

/// `.Header.Get "name"`
fn header(action: &str) -> Option<Piece> {
    let name = action.strip_prefix(".Header.Get")?.trim();
    let name = name.strip_prefix('"')?.strip_suffix('"')?;
    Some(if name.eq_ignore_ascii_case("X-Cf-RouterError") {
        Piece::RouterError
    } else {
        Piece::Nothing
    })
}

/// Appends a text with the entities that Go's `html/template` writes.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'+' => out.extend_from_slice(b"&#43;"),
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            byte => out.push(*byte),
        }
    }
}
