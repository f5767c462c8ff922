//! A first experiment about a system that was just met: written as a person would begin it,
//! with bounds from a short measurement.

mod lifecycle;

use std::fmt::Write as _;
use std::time::Duration;

use units::{show_seconds, write_duration};

pub use lifecycle::lifecycle;

/// What is known of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// How it was asked for: the arguments of the command that writes the file.
    pub asked: String,
    /// Where load goes.
    pub target: DraftTarget,
    /// Rate of the measurement, in requests a second.
    pub rate: u32,
    /// How long most answers of the measurement took: nine of ten were faster.
    pub p90: Duration,
}

/// Where load goes.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftTarget {
    /// To something that runs already.
    Url(String),
    /// To a program that the run starts.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// Where it listened when it was measured.
        port: u16,
        /// What decides where it listens.
        chosen: PortChosen,
        /// What is asked for, beginning with a slash.
        path: String,
    },
}

/// What decides on which port a program listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortChosen {
    /// Its arguments: the number stands there.
    ByArguments,
    /// The variable PORT.
    ByEnvironment,
    /// The program.
    ByItself,
}

impl PortChosen {
    /// What decided, when a program with these words and this variable PORT listened on
    /// `port`.
    pub fn when(words: &[String], variable: u16, port: u16) -> Self {
        if words.iter().any(|word| with_port(word, port).is_some()) {
            Self::ByArguments
        } else if port == variable {
            Self::ByEnvironment
        } else {
            Self::ByItself
        }
    }
}

impl Draft {
    /// A time that p95 stays below as long as nothing changes, and that is exceeded when
    /// something does: three times what nine of ten took, and never less than 20 ms more,
    /// which a busy machine may take.
    pub fn slowest(&self) -> Duration {
        let bound = (self.p90 * 3).max(self.p90 + Duration::from_millis(20));
        let mut step = Duration::from_millis(1);
        loop {
            for factor in [1, 2, 5] {
                if step * factor >= bound {
                    return step * factor;
                }
            }
            step *= 10;
        }
    }

    /// The name of the experiment: what is loaded, in the letters that a name may have.
    pub fn name(&self) -> String {
        let of = match &self.target {
            DraftTarget::Url(url) => url.split_once("://").map_or(&**url, |(_, rest)| rest),
            DraftTarget::Command { words, .. } => {
                let program = words.first().map_or("system", |word| &**word);
                program.rsplit('/').next().unwrap_or(program)
            }
        };
        let host = of.split(['/', '?']).next().unwrap_or_default();
        let letters = host
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let name: String = letters.take(40).collect();
        format!("first-{}", name.trim_matches('-'))
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut text = self.head();
        let (url, ready) = match &self.target {
            DraftTarget::Url(url) => (escaped(url), None),
            DraftTarget::Command {
                words,
                port,
                chosen,
                path,
            } => (
                system(&mut text, words, *port, *chosen, path),
                (*chosen == PortChosen::ByItself).then_some(()),
            ),
        };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            r#"# What is asked, and how: docs/requests.md.
[[load]]
name = "traffic"
http = {}

"#,
            quoted(&format!("GET {url}"))
        );
        if ready.is_some() {
            text += r#"# The program decides itself where it listens, so it is ready when it answers.
[[step]]
name = "until it answers"
load = { traffic = "{rate}" }
wait = { until = "traffic ok == 100%", steady = "1s", at_most = "30s" }

"#;
        }
        text += r#"[[step]]
name = "steady"
load = { traffic = "{rate}" }
hold = "20s"

# What must hold; the exit code of the run says whether it did.
[[expect]]
that = "'steady': traffic p95 < {slowest}"
[[expect]]
that = "'steady': traffic errors < 2%"

# Next: how far does it go? This step searches for the highest rate at which the conditions
# hold. It loads the system up to its limit, so ask whoever else uses it.
#
# [[step]]
# name = "knee"
# search = { vary = "traffic.rate", from = "{rate}", at_most = "2m" }
# while = { good = ["traffic p95 < {slowest}", "traffic errors < 1%"] }
"#;
        text
    }

    fn head(&self) -> String {
        let (rate, slowest) = (self.rate, write_duration(self.slowest()));
        format!(
            r#"# Written by: headroom init {}
# When it was written, nine of ten answers took less than {} at {rate}/s.
#
#   headroom check FILE      find every mistake, start nothing
#   headroom run FILE        run it; the report is a file to open in a browser
lab = 1
name = "{}"
about = "A steady {{rate}}, answered within {{slowest}}"

[let]
rate = "{rate}/s"
slowest = "{slowest}"

"#,
            self.asked.replace(['\n', '\r'], " "),
            show_seconds(self.p90.as_secs_f64()),
            self.name(),
        )
    }
}

/// Writes the system, and returns the URL that load goes to.
fn system(
    text: &mut String,
    words: &[String],
    port: u16,
    chosen: PortChosen,
    path: &str,
) -> String {
    let words = words.iter().map(|word| {
        let with_port = match chosen {
            PortChosen::ByArguments => with_port(word, port),
            _ => None,
        };
        as_word(&with_port.unwrap_or_else(|| escaped(word)))
    });
    let run = words.collect::<Vec<_>>().join(" ");
    let path = escaped(path);
    *text += "# What is measured. The run starts it on a free port, watches it and ends it.\n";
    *text += "[[system]]\nname = \"target\"\n";
    let _ = writeln!(text, "run = {}", quoted(&run));
    match chosen {
        PortChosen::ByItself => {
            *text += "\n";
            return format!("http://127.0.0.1:{port}{path}");
        }
        PortChosen::ByEnvironment => *text += "env = { PORT = \"{port}\" }\n",
        PortChosen::ByArguments => {}
    }
    let _ = writeln!(text, "ready = {}\n", quoted(&format!("http {path}")));
    format!("http://{{target.addr}}{path}")
}

/// A word in which the port is left to the run; `None`: it does not name the port.
fn with_port(word: &str, port: u16) -> Option<String> {
    let number = port.to_string();
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let at = word.match_indices(&number).find_map(|(at, _)| {
        let (before, after) = (&word[..at], &word[at + number.len()..]);
        let whole = !digit(before.chars().next_back()) && !digit(after.chars().next());
        whole.then_some((before, after))
    });
    at.map(|(before, after)| format!("{}{{port}}{}", escaped(before), escaped(after)))
}

/// Text in which no brace begins a name.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// A word of a command line as the file splits it.
fn as_word(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else if word.contains('\'') {
        let inner = word.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{inner}\"")
    } else {
        format!("'{word}'")
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::plan::{Plan, Program, Ready};
    use crate::{Source, check};

    fn words(line: &str) -> Vec<String> {
        line.split('|').map(str::to_owned).collect()
    }

    fn draft(target: DraftTarget) -> Draft {
        Draft {
            asked: "something".to_owned(),
            target,
            rate: 20,
            p90: Duration::from_millis(4),
        }
    }

    fn plan(draft: &Draft) -> Plan {
        let source = Source {
            name: "experiment.toml".to_owned(),
            text: draft.to_toml(),
        };
        check(&source, &[], &Catalogue::default()).unwrap_or_else(|mistakes| {
            let mistakes: Vec<String> = mistakes.iter().map(|one| one.render(false)).collect();
            panic!("{}\n{}", mistakes.join("\n"), source.text)
        })
    }

    #[test]
    fn a_draft_about_a_url_checks_clean() {
        let urls = [
            "http://127.0.0.1:8080/",
            "http://shop.example/items?q={x}&r=\"1\"",
            "https://api.example:8443/v1",
        ];
        for url in urls {
            let plan = plan(&draft(DraftTarget::Url(url.to_owned())));
            assert_eq!((plan.systems.len(), plan.loads.len()), (0, 1));
            assert_eq!((plan.steps.len(), plan.expects.len()), (1, 2));
        }
    }

    #[test]
    fn a_draft_about_a_program_leaves_the_port_to_the_run() {
        let by_arguments = |line: &str, port| {
            let words = words(line);
            let chosen = PortChosen::when(&words, 1, port);
            let draft = draft(DraftTarget::Command {
                words,
                port,
                chosen,
                path: "/health".to_owned(),
            });
            (draft.to_toml(), plan(&draft))
        };
        let (text, plan) = by_arguments("./server|--listen|127.0.0.1:8080|--name|my {shop}", 8080);
        assert!(text.contains("--listen 127.0.0.1:{port} --name 'my {{shop}}'"));
        let system = &plan.systems[0];
        assert!(matches!(system.program, Program::Path(_)));
        assert_eq!(system.ready, Some(Ready::Http("/health".to_owned())));

        let (text, _) = by_arguments("server|-p9000|--size|90001", 9000);
        assert!(text.contains("\"server -p{port} --size 90001\""), "{text}");
        let (text, _) = by_arguments("server|it's \"so\" \\", 1);
        assert!(text.contains("PORT = \"{port}\""), "{text}");
        let (text, plan) = by_arguments("server", 6000);
        assert!(text.contains("http://127.0.0.1:6000/health"), "{text}");
        assert_eq!(plan.steps.len(), 2, "it waits until it answers");
    }

    #[test]
    fn the_bound_is_a_round_number_well_above_what_was_seen() {
        for (p90_us, slowest_ms) in [
            (100, 50),
            (4_000, 50),
            (10_000, 50),
            (70_000, 500),
            (900_000, 5_000),
        ] {
            let draft = Draft {
                p90: Duration::from_micros(p90_us),
                ..draft(DraftTarget::Url("http://x/".to_owned()))
            };
            assert_eq!(draft.slowest(), Duration::from_millis(slowest_ms));
        }
    }

    #[test]
    fn names_say_what_is_loaded() {
        let of = |url: &str| draft(DraftTarget::Url(url.to_owned())).name();
        assert_eq!(of("http://127.0.0.1:8080/x"), "first-127-0-0-1-8080");
        assert_eq!(of("https://Shop.example"), "first-Shop-example");
    }

    #[test]
    fn the_search_that_is_proposed_can_be_switched_on() {
        let draft = draft(DraftTarget::Url("http://x/".to_owned()));
        let on = draft.to_toml().replace("\n# [[step]]", "\n[[step]]");
        let on = ["name = ", "search = ", "while = "]
            .iter()
            .fold(on, |text, key| text.replace(&format!("# {key}"), key));
        let source = Source {
            name: "x".to_owned(),
            text: on,
        };
        let plan = check(&source, &[], &Catalogue::default()).unwrap();
        assert_eq!(plan.steps.len(), 2);
    }
}
