//! Inventories that an administrator uploads for a node: both halves in one form.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::answers::ApiError;
use super::route::{Answer, Call, Route, routes};
use super::schema::TEXT;
use crate::server::service::Service;

/// Parts of a form that are looked at.
const PARTS: usize = 16;

/// The calls of inventories.
pub(super) const ROUTES: &[Route] = routes! {
    post "inventories/upload" "uploadInventory"
        "Take an inventory and its signature: a form (multipart) with the files `file` and \
         `signature`"
        => "inventories": TEXT, Later(|service, call| Box::pin(service.uploaded(call)));
};

/// A file of a form.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    /// The form's name for it.
    name: String,
    /// The file's own.
    file: String,
    content: Bytes,
}

/// The parts of a form, whose first line tells what stands between them.
fn parts(body: &Bytes) -> Option<Vec<Part>> {
    let end = memchr::memmem::find(body, b"\r\n")?;
    let line = body.slice(..end);
    let boundary = line.strip_prefix(b"--").filter(|line| !line.is_empty())?;
    let between = [b"\r\n--", boundary].concat();
    let mut parts = Vec::new();
    let mut at = end + 2;
    while parts.len() < PARTS {
        let rest = body.get(at..)?;
        let head = memchr::memmem::find(rest, b"\r\n\r\n")?;
        let length = memchr::memmem::find(rest.get(head + 4..)?, &between)?;
        let start = at + head + 4;
        let words = String::from_utf8_lossy(rest.get(..head)?);
        parts.push(Part {
            name: word(&words, "name").unwrap_or_default(),
            file: word(&words, "filename").unwrap_or_default(),
            content: body.slice(start..start + length),
        });
        let after = start + length + between.len();
        if body.get(after..)?.starts_with(b"--") {
            return Some(parts);
        }
        at = after + 2;
    }
    None
}

/// A word of a part's head: `name="…"`.
fn word(head: &str, key: &str) -> Option<String> {
    let mut words = head.split([';', '\r', '\n']).map(str::trim);
    let found = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
    Some(found.trim_matches('"').to_owned())
}

impl Service {
    async fn uploaded(&self, call: &Call<'_>) -> Answer {
        let wrong = "expected a form (multipart/form-data) with the files \"file\" and \
                     \"signature\"";
        let found = parts(&call.body).ok_or_else(|| ApiError::bad(wrong))?;
        let of = |name: &str| {
            let part = found.iter().find(|part| part.name == name);
            part.ok_or_else(|| ApiError::field(name, "it is missing in the form"))
        };
        let (file, signature) = (of("file")?, of("signature")?);
        let taken = |error: crate::uploads::UploadRejection| ApiError::new(error.status, error.why);
        let stem = file.file.strip_suffix(".gz").unwrap_or(&file.file);
        let of_signature = format!("{stem}.sign");
        let content = signature.content.clone();
        let first = self.intake.inventory(&of_signature, content).await;
        let first = first.map_err(taken)?;
        let content = file.content.clone();
        let second = self.intake.inventory(&file.file, content).await;
        let (_, told) = match first.0 {
            StatusCode::ACCEPTED => second.map_err(taken)?,
            // Another one had sent its half under this name.
            _ => first,
        };
        Ok(json!({"inventories": told.trim_end()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(parts: &[(&str, &str, &[u8])]) -> Bytes {
        let mut body = Vec::new();
        for (name, file, content) in parts {
            let head = format!(
                "--b0\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            );
            body.extend([head.as_bytes(), content, b"\r\n"].concat());
        }
        body.extend(b"--b0--\r\n");
        body.into()
    }

    #[test]
    fn a_form_is_read_and_what_is_none_is_not() {
        let all: [(&str, &str, &[u8]); 2] = [
            ("file", "n.ocs.gz", b"\x1f\x8b\r\n\r\n--b\0"),
            ("signature", "n.ocs.sign", b""),
        ];
        let whole = form(&all);
        let read = parts(&whole).unwrap();
        let expected = all.map(|(name, file, content)| Part {
            name: name.into(),
            file: file.into(),
            content: Bytes::from_static(content),
        });
        assert_eq!(read, expected);
        for cut in 0..whole.len() - 4 {
            assert_eq!(parts(&whole.slice(..cut)), None, "{cut}");
        }
        assert_eq!(parts(&form(&[("x", "y", &b""[..]); 17])), None);
        assert_eq!(parts(&Bytes::from_static(b"--\r\n\r\n\r\n\r\n----")), None);
    }
}
