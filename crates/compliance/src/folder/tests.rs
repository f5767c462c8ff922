use document::Source;

use super::{FolderFile, read};
use crate::model::mode::PolicyMode;
use crate::model::target::{RuleTarget, Target};
use crate::model::technique::{Action, Body};

fn file(path: &str, text: &str) -> FolderFile {
    FolderFile {
        path: path.into(),
        source: Source {
            name: path.into(),
            text: text.into(),
        },
    }
}

const TECHNIQUE: &str = "\
name: Message of the day
version: 1.0
params:
  - name: text
    constraints: {allow_empty: false}
items:
  - name: File
    method: file_content
    params:
      path: /etc/motd
      lines: ${motd.text}
  - name: Block
    items:
      - name: Mode
        method: permissions
        params: {path: /etc/motd, mode: 0644}
";

fn folder() -> Vec<FolderFile> {
    vec![
        file("settings.yml", "agentRun: {interval: 10}\n"),
        file("parameters.yml", "dns: 1.1.1.1\nlist: [1, two]\n"),
        file("techniques/motd.yml", TECHNIQUE),
        file(
            "groups/web.toml",
            "[query]\nwhere = [{objectType = \"node\", attribute = \"nodeHostname\", \
             comparator = \"regex\", value = \"web.*\"}]\n",
        ),
        file(
            "directives/hello.yml",
            "technique: motd\npolicyMode: audit\nparams:\n  text: hello\n",
        ),
        file(
            "rules/all.yml",
            "directives: [hello]\ntargets: [special:all, group:web]\n",
        ),
    ]
}

fn errors(files: &[FolderFile]) -> String {
    let problems = read(files).unwrap_err();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    shown.join("\n")
}

/// The folder with a text of a file in the place of another.
fn with(path: &str, from: &str, to: &str) -> Vec<FolderFile> {
    let mut files = folder();
    let file = files.iter_mut().find(|file| file.path == path).unwrap();
    assert!(file.source.text.contains(from), "{from}");
    file.source.text = file.source.text.replacen(from, to, 1);
    files
}

#[test]
fn a_folder_is_read_as_it_is_meant() {
    let all = read(&folder()).unwrap();
    assert_eq!(all.settings.agent_run.interval, 10);
    assert_eq!(all.settings.agent_run.splay, 4);
    assert_eq!(all.parameters["dns"].value, "1.1.1.1");
    let technique = &all.techniques["motd/1.0"];
    let Body::Methods(methods) = &technique.body else {
        panic!("methods");
    };
    assert_eq!(methods.items[0].id, "motd-1");
    let Action::Block { items } = &methods.items[1].action else {
        panic!("a block");
    };
    assert_eq!(items[0].id, "motd-2-1");
    let Action::Call { params, .. } = &items[0].action else {
        panic!("a call");
    };
    // As it is written, not as a number of YAML.
    assert_eq!(params[1], ("mode".into(), "0644".into()));
    // The order of parameters survives whoever sorts keys.
    let sorted = serde_json::to_value(&all).unwrap();
    let passed_on: crate::definitions::Definitions = serde_json::from_value(sorted).unwrap();
    assert_eq!(passed_on, all);
    let directive = &all.directives["hello"];
    assert_eq!(directive.policy_mode, Some(PolicyMode::Audit));
    assert_eq!(directive.parameters.section.value("text"), Some("hello"));
    let targets = [Target::All, Target::Group("web".into())];
    assert_eq!(all.rules["all"].targets, targets.map(RuleTarget::Simple));
    assert!(all.groups["web"].dynamic);
}

#[test]
fn mistakes_are_shown_at_their_places() {
    for (path, from, to, shown) in [
        (
            "rules/all.yml",
            "[hello]",
            "[helo]",
            "rules/all.yml:1:14: there is no directive \"helo\"\n   1 | directives: [helo]\n     \
             |              ^^^^\n     help: did you mean \"hello\"?",
        ),
        (
            "rules/all.yml",
            "group:web",
            "group:wep",
            "rules/all.yml:2:24: there is no group \"wep\"",
        ),
        (
            "rules/all.yml",
            "special:all",
            "special:every",
            "rules/all.yml:2:11: unknown target \"special:every\"",
        ),
        (
            "rules/all.yml",
            "targets",
            "target",
            "rules/all.yml:2:1: unknown key \"target\"",
        ),
        (
            "directives/hello.yml",
            "technique: motd",
            "technique: mott",
            "directives/hello.yml:1:12: there is no technique \"mott/1.0\"",
        ),
        (
            "directives/hello.yml",
            "text: hello",
            "txt: hello",
            "directives/hello.yml:4:8: the technique has no parameter \"txt\"",
        ),
        (
            "directives/hello.yml",
            "audit",
            "adit",
            "directives/hello.yml:2:13: ",
        ),
        (
            "techniques/motd.yml",
            "constraints: {allow_empty: false}",
            "constraints: {type: integer}",
            "directives/hello.yml:4:9: ",
        ),
        (
            "groups/web.toml",
            "nodeHostname",
            "hostname",
            "groups/web.toml:2:9: ",
        ),
        ("settings.yml", "10", "ten", "settings.yml:1:22: "),
        (
            "settings.yml",
            "{",
            "[",
            "settings.yml:2:1: this is not YAML",
        ),
    ] {
        let errors = errors(&with(path, from, to));
        assert!(errors.contains(shown), "{errors}\nexpected {shown}");
    }
}

#[test]
fn an_object_is_there_once_and_every_file_has_its_place() {
    let mut files = folder();
    files.push(file("rules/more.yml", "id: all\n"));
    assert!(errors(&files).contains("rules/more.yml:1:5: \"all\" is also in rules/all.yml"));
    let mut files = folder();
    files.push(file("rule/more.yml", "name: x\n"));
    assert!(errors(&files).contains("rule/more.yml:1:1: no file belongs here"));
    let mut files = folder();
    files.push(file("rules/inventory-all.yml", "name: x\n"));
    assert!(errors(&files).contains("one of the server's own"));
}
