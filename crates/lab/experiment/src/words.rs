//! Splitting a command line into words, without a shell.

use document::Problem;

use crate::text::Text;

/// Splits at white space. `'single'` and `"double"` quotes keep white space inside
/// a word; a backslash takes the next character as it is, except in single quotes.
/// Nothing is expanded.
pub(crate) fn split(line: &Text) -> Result<Vec<Text>, Problem> {
    let mut words = Vec::new();
    let mut word: Option<Text> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut chars = line.as_str().char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let literal = match quote {
            None if c.is_whitespace() => {
                words.extend(word.take());
                continue;
            }
            None if matches!(c, '\'' | '"') => {
                quote = Some((c, at));
                word.get_or_insert_with(|| Text::empty_at(line, at));
                continue;
            }
            Some((open, _)) if c == open => {
                quote = None;
                continue;
            }
            Some(('"', _)) if c == '\\' => {
                let escaped = chars.next_if(|&(_, next)| matches!(next, '"' | '\\'));
                escaped.unwrap_or((at, c))
            }
            None if c == '\\' => chars.next().ok_or_else(|| {
                Problem::new(
                    line.span(at..at + 1),
                    "the last backslash has nothing to take as it is",
                )
                .help("write \\\\ for a backslash")
            })?,
            _ => (at, c),
        };
        let (from, c) = literal;
        word.get_or_insert_with(|| Text::empty_at(line, from))
            .push(&line.slice(from..from + c.len_utf8()));
    }
    if let Some((open, at)) = quote {
        let message = format!("the quote {open} is not closed");
        return Err(Problem::new(line.span(at..at + 1), message).help(format!(
            "close it, or write \\{open} for the character itself"
        )));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let text = Text::at(line, 0..1);
        split(&text)
            .unwrap()
            .iter()
            .map(|word| word.as_str().to_owned())
            .collect()
    }

    #[test]
    fn white_space_separates_and_quotes_keep() {
        assert_eq!(words("  a  b\tc "), ["a", "b", "c"]);
        assert_eq!(
            words(r#"--x "a b" 'c "d' e"f"g"#),
            ["--x", "a b", "c \"d", "efg"]
        );
        assert_eq!(words("''"), [""]);
        assert_eq!(words(""), Vec::<String>::new());
    }

    #[test]
    fn backslashes_take_the_next_character() {
        assert_eq!(words(r"a\ b \'"), ["a b", "'"]);
        assert_eq!(words(r#""a\"b\n""#), [r#"a"b\n"#]);
        assert_eq!(words(r"'a\b'"), [r"a\b"]);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        let problem = split(&Text::at("a 'b", 3..4)).unwrap_err();
        assert_eq!(problem.message, "the quote ' is not closed");
        assert!(split(&Text::at("a\\", 0..1)).is_err());
    }
}
