//! What curl is told. It reads all of it from its input: addresses and headers have passwords,
//! and whoever lists processes sees arguments.

use crate::agent::system::Request;

/// Its arguments.
pub(super) const ARGS: [&str; 2] = ["--config", "-"];

/// Its input. A redirection is an answer, which is not followed.
pub(super) fn input(request: &Request, seconds: u64) -> String {
    let mut lines = vec![
        "silent".to_owned(),
        "show-error".into(),
        "proto = \"=http,https\"".into(),
        format!("max-time = {seconds}"),
        "output = \"/dev/null\"".into(),
        "write-out = \"%{http_code}\"".into(),
        option("url", &request.url),
        // Curl takes some characters of an address for a pattern otherwise.
        "globoff".into(),
    ];
    match request.method.as_str() {
        "HEAD" => lines.push("head".into()),
        method => lines.push(option("request", method)),
    }
    lines.extend(request.headers.iter().map(|one| option("header", one)));
    lines.join("\n") + "\n"
}

fn option(name: &str, value: &str) -> String {
    let mut text = format!("{name} = \"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            // It would begin another option.
            '\n' | '\r' => text.push(' '),
            _ => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_become_another_option() {
        let request = Request {
            method: "GET".into(),
            url: "http://h/\"\noutput = \"/etc/passwd".into(),
            headers: vec!["X-Token: a\\b".into()],
        };
        let text = input(&request, 30);
        assert!(
            text.contains("url = \"http://h/\\\" output = \\\"/etc/passwd\""),
            "{text}"
        );
        assert!(text.contains("header = \"X-Token: a\\\\b\""), "{text}");
        let outputs = text.lines().filter(|line| line.starts_with("output"));
        assert_eq!(outputs.count(), 1);
    }
}
