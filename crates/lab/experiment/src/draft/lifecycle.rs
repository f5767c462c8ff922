//! A lifecycle as a person would write it into a file.

use std::fmt::Write as _;

use super::quoted;
use crate::plan::Lifecycle;

/// Remarks stand below each other, except those of longer lines.
const WIDTH: usize = 80;

/// The `[[lifecycle]]` of a file, with a remark on each point's line.
///
/// `remarks` has one text for each point; missing and empty ones are left out. Lines end with
/// a newline.
pub fn lifecycle(lifecycle: &Lifecycle, remarks: &[String]) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
        format!("[{}]", texts.join(", "))
    };
    let mut text = format!(
        "[[lifecycle]]\nname = {}\nkey = {}\n",
        string(&lifecycle.name),
        list(&lifecycle.key)
    );
    if !lifecycle.alias.is_empty() {
        let alias: Vec<String> = lifecycle.alias.iter().map(|part| part.join("+")).collect();
        let _ = writeln!(text, "alias = {}", list(&alias));
    }
    if !lifecycle.group.is_empty() {
        let _ = writeln!(text, "group = {}", list(&lifecycle.group));
    }
    text += "points = [\n";
    let points: Vec<String> = lifecycle
        .points
        .iter()
        .map(|(name, matcher)| format!("  [{}, {}],", string(name), string(matcher)))
        .collect();
    let widths = points.iter().map(|point| point.chars().count());
    let width = widths.filter(|width| *width <= WIDTH).max();
    let none = String::new();
    for (at, point) in points.iter().enumerate() {
        let remark = remarks.get(at).unwrap_or(&none).replace(['\n', '\r'], " ");
        match remark.is_empty() {
            true => text += point,
            false => {
                let _ = write!(text, "{point:0$}  # {remark}", width.unwrap_or_default());
            }
        }
        text.push('\n');
    }
    text + "]\n"
}

/// A string of TOML, an expression as it is.
fn string(text: &str) -> String {
    let plain = |c: char| c != '\'' && !c.is_control();
    match text.contains(['\\', '"']) && text.chars().all(plain) {
        true => format!("'{text}'"),
        false => quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::{Source, check};

    #[test]
    fn what_is_written_is_what_is_read() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let planned = Lifecycle {
            name: "order".into(),
            key: texts(&["order-id", r"/\border ([\w-]+)/", r"/'(\d{3})'/"]),
            alias: vec![texts(&["process", "index"])],
            group: texts(&["host"]),
            points: vec![
                ("begun".into(), "order \"begun\" {now}".into()),
                ("it-is".into(), "it's \\ done".into()),
                ("paid".into(), "/^paid\\s+\\S+$/".into()),
            ],
        };
        let remarks = [String::new(), "80 of 80\n".to_owned()];
        let text = lifecycle(&planned, &remarks);
        assert!(text.contains("# 80 of 80 \n"), "{text}");
        let source = Source {
            name: "x.toml".to_owned(),
            text: format!("lab = 1\nname = \"x\"\n{text}[[step]]\nname = \"s\"\nhold = \"1s\"\n"),
        };
        let plan = check(&source, &[], &Catalogue::default()).unwrap_or_else(|mistakes| {
            let mistakes: Vec<String> = mistakes.iter().map(|one| one.render(false)).collect();
            panic!("{}\n{text}", mistakes.join("\n"))
        });
        assert_eq!(plan.lifecycles, [planned]);
    }
}
