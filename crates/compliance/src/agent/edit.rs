//! Contents of files as methods want them.

/// Lines of a parameter, without the last one's end.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').collect()
}

/// The text with these lines at its end, as far as it lacks them.
pub(super) fn with_lines(text: &str, wanted: &[&str]) -> String {
    let mut out = text.to_owned();
    for line in wanted {
        if !text_lines(&out).any(|known| known == *line) {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The text without these lines.
pub(super) fn without_lines(text: &str, unwanted: &[&str]) -> String {
    let kept = text.split_inclusive('\n').filter(|line| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        !unwanted.contains(&line)
    });
    kept.collect()
}

/// The text in which every line `key=…` is `key=value`, added at the end if there is none.
pub(super) fn with_value(text: &str, key: &str, value: &str) -> String {
    let is_key = |line: &str| {
        let line = line.split_once('=');
        line.is_some_and(|(found, _)| found.trim() == key)
    };
    let wanted = format!("{key}={value}");
    if !text_lines(text).any(is_key) {
        return with_lines(text, &[&wanted]);
    }
    let mut out = String::with_capacity(text.len() + value.len());
    for line in text.split_inclusive('\n') {
        let (content, end) = match line.strip_suffix('\n') {
            Some(content) => (content, "\n"),
            None => (line, ""),
        };
        out.push_str(if is_key(content) { &wanted } else { content });
        out.push_str(end);
    }
    out
}

fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    let none = text.is_empty();
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').filter(move |_| !none)
}
