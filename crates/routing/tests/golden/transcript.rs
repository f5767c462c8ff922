//! Sections of a recorded transcript, and texts made comparable.

/// The text of the section with a title, as it was recorded.
pub(crate) fn section<'t>(transcript: &'t str, title: &str) -> &'t str {
    let begin = format!("===== {title}\n");
    let start = transcript
        .find(&begin)
        .unwrap_or_else(|| panic!("no section {title:?}"));
    let text = &transcript[start + begin.len()..];
    let end = text.find("\n===== ").unwrap_or(text.len());
    text[..end].trim_end_matches('\n')
}

/// The log line that stands behind the section with a title.
pub(crate) fn log_behind<'t>(transcript: &'t str, title: &str) -> &'t str {
    let begin = format!("===== {title}\n");
    let start = transcript.find(&begin).unwrap() + begin.len();
    let behind = &transcript[start..];
    let next = behind.find("\n===== ").unwrap() + 1;
    let behind = &behind[next..];
    let title_end = behind.find('\n').unwrap() + 1;
    assert!(
        behind.starts_with("===== log") || behind.starts_with("===== access log"),
        "behind {title:?} stands {:?}",
        &behind[..title_end]
    );
    let line = &behind[title_end..];
    &line[..line.find('\n').unwrap_or(line.len())]
}

/// A text in which everything that differs between two runs is replaced: dates, ids, times
/// of starts, the harness's own marks.
pub(crate) fn masked(text: &str) -> String {
    let text = text.replace('\r', "");
    let text = text
        .trim_end_matches("<<TIMEOUT>>")
        .trim_end_matches("<<EOF>>");
    let lines = text.trim_end().lines().map(|line| {
        if line.starts_with("Date: ") {
            return "Date: *".to_owned();
        }
        if line
            .strip_prefix("X-Request-Start: ")
            .is_some_and(|start| start.len() == 13)
        {
            return "X-Request-Start: *".to_owned();
        }
        without_ids(line)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces runs of at least 16 hexadecimal digits and hyphens by their length.
pub(crate) fn without_ids(line: &str) -> String {
    let mut out = String::new();
    let mut run = String::new();
    for letter in line.chars().chain(['\n']) {
        if matches!(letter, '0'..='9' | 'a'..='f' | '-') {
            run.push(letter);
            continue;
        }
        if run.len() >= 16 && !run.starts_with("11111111") {
            out.push_str(&format!("<{}>", run.len()));
        } else {
            out.push_str(&run);
        }
        run.clear();
        out.push(letter);
    }
    out.pop();
    out
}
