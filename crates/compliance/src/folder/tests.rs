use document::Source;

use super::{FolderFile, read};
use crate::model::mode::PolicyMode;
use crate::model::target::{RuleTarget, Target};
use crate::model::technique::{Action, Body};

/// Cases, and what is to be said of each.
macro_rules! cases {
    ($($case:expr => $shown:expr;)*) => {
        [$(($case, $shown)),*]
    };
}

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
    for ((path, from, to), shown) in cases![
        ("rules/all.yml", "[hello]", "[helo]")
            => "rules/all.yml:1:14: there is no directive \"helo\"\n   1 | directives: \
                [helo]\n     |              ^^^^\n     help: did you mean \"hello\"?";
        ("rules/all.yml", "group:web", "group:wep")
            => "rules/all.yml:2:24: there is no group \"wep\"";
        ("rules/all.yml", "special:all", "special:every")
            => "rules/all.yml:2:11: unknown target \"special:every\"";
        ("rules/all.yml", "special:all", "{include: [special:all], exclude: {or: []}}")
            => "rules/all.yml:2:21: invalid type: sequence, expected {or: [TARGET, …]} or \
                {and: [TARGET, …]}";
        ("rules/all.yml", "targets", "target") => "rules/all.yml:2:1: unknown key \"target\"";
        ("directives/hello.yml", "technique: motd", "technique: mott")
            => "directives/hello.yml:1:12: there is no technique \"mott/1.0\"";
        ("directives/hello.yml", "text: hello", "txt: hello")
            => "directives/hello.yml:4:3: the technique has no parameter \"txt\"";
        ("directives/hello.yml", "audit", "adit") => "directives/hello.yml:2:13: ";
        ("techniques/motd.yml", "constraints: {allow_empty: false}", "constraints: {type: integer}")
            => "directives/hello.yml:4:9: ";
        ("groups/web.toml", "nodeHostname", "hostname") => "groups/web.toml:2:9: ";
        ("settings.yml", "10", "ten") => "settings.yml:1:22: ";
        ("settings.yml", "{", "[") => "settings.yml:2:1: this is not YAML";
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

/// A technique, a directive of it with these values, and a rule.
fn of_technique(technique: &str, values: &str) -> Vec<FolderFile> {
    vec![
        file("techniques/u.yml", technique),
        file("directives/d.yml", &format!("technique: u\n{values}")),
        file("rules/r.yml", "directives: [d]\ntargets: [special:all]\n"),
    ]
}

#[test]
fn what_no_agent_could_do_is_found_in_techniques() {
    let item = |text: &str| format!("items: [{{{text}}}]\n");
    let absent = |text: &str| {
        item(&format!(
            "{text}, method: file_absent, params: {{path: /a}}"
        ))
    };
    let block = |reporting: &str| {
        item(&format!(
            "name: b, reporting: {reporting}, \
             items: [{{name: a, id: i10, method: file_absent, params: {{path: /a}}}}]"
        ))
    };
    let call = |method: &str, params: &str| {
        item(&format!("name: a, method: {method}, params: {{{params}}}"))
    };
    let twice = "items: [{id: q, method: file_absent, params: {path: /a}}, \
                 {id: q, method: file_absent, params: {path: /b}}]\n";
    for (technique, shown) in cases![
        call("file_contnt", "path: /a")
            => "techniques/u.yml:1:27: there is no method \"file_contnt\"\n   1 | items: [{name: \
                a, method: file_contnt, params: {path: /a}}]\n     |                           \
                ^^^^^^^^^^^\n     help: did you mean \"file_content\"?";
        call("file_content", "path: /a") => "1:49: file_content needs the parameter \"lines\"";
        call("file_content", "path: /a, lines: b, linse: c")
            => "1:70: file_content has no parameter \"linse\"";
        call("file_content", "path: /a, lines: {x: 1}")
            => "1:67: the parameter \"lines\" is a table; expected a text";
        call("file_content", "path: /a, lines: [x]")
            => "the parameter \"lines\" is a list; expected a text";
        call("file_content", "path: /a, lines: \"${u.nope}\"")
            => "1:67: the technique has no parameter \"nope\"";
        call("permissions", "path: /a, mode: u+x") => "1:65: the mode \"u+x\" is not octal";
        absent("name: a, condition: '(linux'")
            => "1:30: the condition \"(linux\" cannot be read at byte 6";
        absent("name: a, policy_mode_override: audt")
            => "1:41: unknown policy mode \"audt\"; expected audit, enforce or default";
        absent("name: a@@b") => "1:16: the name has @@, which delimits reports";
        absent("name: a, methd: x") => "1:19: unknown key \"methd\"";
        item("name: a") => "1:9: an item needs a method, or items";
        absent("name: a, items: []") => "1:26: an item has a method or items, not both";
        absent("foreach: [{k: 1}], name: \"${item.key}\"")
            => "1:35: not every set of the foreach has the key \"key\"";
        block("{mode: worst}") => "1:37: unknown reporting mode \"worst\"";
        block("{mode: focus, id: i10typo}") => "1:48: the block has no item \"i10typo\"";
        block("{mode: focus}") => "1:37: the reporting mode focus needs the id of a call";
        twice.into() => "1:64: \"q\" is the id of another item too";
        format!("version: one\n{}", absent("name: a"))
            => "1:10: \"one\" is no version; expected numbers such as 1.0";
        format!("params: [{{name: p, constraints: {{regex: '('}}}}]\n{}", absent("name: a"))
            => "techniques/u.yml:1:41: ";
        "name: a\n".into() => "1:1: the technique asks nothing; expected items";
    ] {
        let errors = errors(&of_technique(&technique, ""));
        assert!(
            errors.contains(shown),
            "{technique}{errors}\nexpected {shown}"
        );
    }
    // What is right stays so.
    for technique in [
        call("file_content", "path: /a, text: b"),
        call(
            "file_content",
            "path: \"${other.x}\", lines: \"${node.properties[x]}\"",
        ),
        call("permissions", "path: /a, mode: \"${u.mode}\"").replace(
            "items",
            "params: [{name: mode, constraints: {default: '0644'}}]\nitems",
        ),
        absent("name: a, condition: \"${x.y}|linux.!debian\""),
        absent("foreach: [{k: 1}], foreach_name: each, name: \"${each.k}\""),
        block("{mode: focus, id: i10}"),
        block("{mode: focus, id: a}"),
        block("{mode: focus-worst}"),
        item("method: variable_string, params: {prefix: u, name: x, value: 1}").replace(
            "]\n",
            ", {name: \"${u.x}\", method: file_absent, params: {path: /a}}]\n",
        ),
    ] {
        let read = read(&of_technique(&technique, ""));
        let problems = read.err().unwrap_or_default();
        assert!(problems.is_empty(), "{technique}{}", problems[0]);
    }
}

#[test]
fn mistakes_in_directives_rules_and_settings_have_their_places() {
    let technique = "params: [{name: p}]\n\
                     items: [{name: \"${u.p}\", method: file_absent, params: {path: /a}}]\n";
    for (values, shown) in cases![
        "params: {p: {x: [1, 2]}}\n" => "2:13: the parameter \"p\" is a table; expected a text";
        "priority: 11\nparams: {p: x}\n" => "2:11: priority 11; expected 0";
        "policyMode: audits\nparams: {p: x}\n"
            => "2:13: unknown policy mode \"audits\"; expected audit, enforce or default";
        "params: {p: x, foo: c}\n" => "2:16: the technique has no parameter \"foo\"";
        "id: ../x\nparams: {p: x}\n" => "2:5: the id \"../x\" is a path";
    ] {
        let errors = errors(&of_technique(technique, values));
        let shown = format!("directives/d.yml:{shown}");
        assert!(errors.contains(&shown), "{errors}\nexpected {shown}");
    }
    let by_default = of_technique(technique, "policyMode: default\nparams: {p: x}\n");
    assert_eq!(read(&by_default).unwrap().directives["d"].policy_mode, None);
    for ((path, text), shown) in cases![
        ("rules/s.yml", "directives: [d, d]\n") => "1:17: the rule names the directive \"d\" twice";
        ("settings.yml", "agentRun: {interval: 61}\n") => "1:22: agents cannot run every 61 min";
        ("settings.yml", "agentRun: {interval: 60, startHour: 99}\n")
            => "1:37: agents cannot start at 99:00";
        ("parameters.yml", "'a b]': c\n") => "1:1: the property \"a b]\" has ' ' in its name";
        ("groups/g.yml", "nodes: []\nproperties: {'a b': c}\n")
            => "2:13: the property \"a b\" has ' ' in its name";
    ] {
        let mut files = of_technique(technique, "params: {p: x}\n");
        files.push(file(path, text));
        let errors = errors(&files);
        let shown = format!("{path}:{shown}");
        assert!(errors.contains(&shown), "{errors}\nexpected {shown}");
    }
}

#[test]
fn it_must_be_clear_who_belongs_to_a_group() {
    let one = |value: &str| {
        format!("{{objectType: group, attribute: nodeGroupId, comparator: eq, value: {value}}}")
    };
    let of = |id: &str, text: String| file(&format!("groups/{id}.yml"), &text);
    let group = |value: &str| format!("query: {{where: [{}]}}\n", one(value));
    for (files, shown) in [
        (
            vec![of("g", group("g"))],
            "groups/g.yml:1:84: the group's query names the group itself",
        ),
        (
            vec![of("g", group("zzz")), of("zz", "nodes: []\n".into())],
            "groups/g.yml:1:84: there is no group \"zzz\"",
        ),
        (
            vec![
                of("a", group("b")),
                of("b", format!("query: {{where: [{{or: [{}]}}]}}\n", one("c"))),
                of("c", format!("query: {{where: [{{not: {}}}]}}\n", one("a"))),
            ],
            "groups/a.yml:1:84: groups name each other in a circle: a → b → c → a",
        ),
        (
            vec![of("g", format!("nodes: [a]\n{}", group("special")))],
            "groups/g.yml:1:1: a group has a query or nodes, not both",
        ),
        (
            vec![of("g", "name: g\n".into())],
            "groups/g.yml:1:1: it is not said who belongs to the group",
        ),
        (
            vec![of(
                "g",
                group("a").replace("objectType: group", "objectType: nod"),
            )],
            "groups/g.yml:1:30: unknown word \"nod\"\n   1 | query: {where: [{objectType: nod, \
             attribute: nodeGroupId, comparator: eq, value: a}]}\n     |                              \
             ^^^\n     help: did you mean \"node\"?",
        ),
        (
            vec![of("g", "query: {where: [{objectType: node}]}\n".into())],
            "groups/g.yml:1:17: expected objectType, attribute and comparator, or and, or, not",
        ),
        (
            vec![of(
                "g",
                "query: {where: [{objectType: node, attribut: x, comparator: eq}]}\n".into(),
            )],
            "groups/g.yml:1:36: unknown key \"attribut\"",
        ),
    ] {
        let errors = errors(&files);
        assert!(errors.contains(shown), "{errors}\nexpected {shown}");
    }
    let circle = [
        of("a", group("b")),
        of("b", format!("query: {{where: [{{or: [{}]}}]}}\n", one("c"))),
        of("c", format!("query: {{where: [{{not: {}}}]}}\n", one("a"))),
    ];
    // Each of them is named.
    assert_eq!(errors(&circle).matches("in a circle").count(), 3);
    let fine = [of("a", group("b")), of("b", "nodes: []\n".into())];
    read(&fine).unwrap();
}

const KEYS_OF_RUDDER: &str = "\
format: 1
id: keys
name: All keys
version: '0.2'
category: ncf_techniques
description: Short
documentation: '**Long**'
tags: {team: web}
policy_types: [rudder.base]
params:
  - id: p1
    name: choice
    documentation: Which
    constraints:
      allow_empty: true
      select:
        - {value: a.b, name: The first}
        - value: c
  - name: port
    type: integer
    default: 42
    constraints: {regex: {value: '4\\d', error: This is no port}}
  - name: secret
    type: password
    constraints: {password_hashes: [pre-hashed, sha512-crypt]}
  - name: mode
    type: permissions
items:
  - name: Each
    foreach: [{path: /tmp/a}]
    foreach_name: file
    foreach_columns_order: [path]
    foreach_resolved_state: Main
    tags: {cve: none}
    documentation: Why
    condition: false
    method: file_absent
    params: {path: '${file.path}'}
";

#[test]
fn keys_of_rudders_techniques_are_taken() {
    let all = read(&[file("techniques/keys.yml", KEYS_OF_RUDDER)]).unwrap();
    let Body::Methods(methods) = &all.techniques["keys/0.2"].body else {
        panic!("methods");
    };
    let [choice, port, secret, mode] = &methods.params[..] else {
        panic!("{:?}", methods.params);
    };
    // What a key says of values holds, wherever it stands.
    for (param, good, bad) in [
        (
            choice,
            &["a.b", "c", ""][..],
            &["axb", "a.bc", "The first"][..],
        ),
        (port, &["42", "47"], &["52", "port", "421"]),
        (secret, &["$6$salt$hash", "plain"], &[""]),
        (mode, &["0644"], &["rw"]),
    ] {
        let constraint = param.constraints.compile().unwrap();
        for value in good {
            assert_eq!(constraint.check(value), Ok(()), "{} {value}", param.name);
        }
        for value in bad {
            assert!(constraint.check(value).is_err(), "{} {value}", param.name);
        }
    }
    assert_eq!(port.constraints.default.as_deref(), Some("42"));
    assert_eq!((&*choice.id, &*port.id), ("p1", "port"));
    assert_eq!(methods.items[0].condition, "false");

    // What is none of them is told as ever, and so is what is wrong in one of them.
    for ((from, to), shown) in cases![
        ("documentation: Which", "documantation: Which") => "unknown key \"documantation\"";
        ("select:", "selects:") => "unknown key \"selects\"";
        ("'4\\d'", "'4('") => "regular expression";
        ("method: file_absent", "method: ''") => "the method has no name";
        ("method: file_absent", "module: archive") => "unknown key \"module\"";
    ] {
        assert!(KEYS_OF_RUDDER.contains(from), "{from}");
        let text = KEYS_OF_RUDDER.replacen(from, to, 1);
        let shown_of = errors(&[file("techniques/keys.yml", &text)]);
        assert!(shown_of.contains(shown), "{to}: {shown_of}");
        assert!(!shown_of.contains("methods:"), "{shown_of}");
    }
}

#[test]
fn a_setting_that_is_left_out_has_its_usual_value() {
    let of = |text: &str| [file("settings.yml", text)];
    let (policy_mode, agent_run) = {
        let usual = crate::policy::generation::Settings::default();
        (usual.policy_mode, usual.agent_run)
    };
    let read = |text: &str| read(&of(text)).unwrap().settings;
    let settings = read("policyMode: {mode: audit}\nagentRun: {startHour: 3}\n");
    assert_eq!(settings.policy_mode.mode, PolicyMode::Audit);
    assert!(settings.policy_mode.overridable);
    assert_eq!(settings.agent_run.interval, agent_run.interval);
    assert_eq!(settings.agent_run.start_hour, 3);
    let settings = read("policyMode: {overridable: false}\nagentRun: {}\n");
    assert_eq!(settings.policy_mode.mode, policy_mode.mode);
    assert!(!settings.policy_mode.overridable);
    assert_eq!(settings.agent_run, agent_run);
    for (text, told) in cases![
        "policyMode: audit\n"
            => "settings.yml:1:13: invalid type: string \"audit\", expected {mode: audit or \
                enforce, overridable: true or false}";
        "policyMode: {mod: audit}\n" => "1:14: unknown key \"mod\"";
        "policyMode: {mode: audt}\n" => "1:20: unknown word \"audt\"";
        "agentRun: 5\n" => "expected {interval: 5, startHour: 0";
    ] {
        let errors = errors(&of(text));
        assert!(errors.contains(told), "{errors}\nexpected {told}");
    }
}

#[test]
fn a_long_list_of_names_is_shown_once() {
    let call = |name: &str, method: &str| {
        let item = format!("name: {name}, method: {method}, params: {{path: /a}}");
        file(
            &format!("techniques/{name}.yml"),
            &format!("items: [{{{item}}}]\n"),
        )
    };
    let files = [
        call("a", "unheard_of"),
        call("b", "quite_another_thing"),
        call("c", "file_absnt"),
        call("d", "something_else"),
    ];
    let errors = errors(&files);
    assert_eq!(errors.matches("there is no method").count(), 4, "{errors}");
    assert_eq!(errors.matches("methods: ").count(), 1, "{errors}");
    assert_eq!(errors.matches("did you mean \"file_absent\"?").count(), 1);
}

#[test]
fn how_long_compliance_is_kept_is_checked() {
    let policy = |duration: &str| {
        format!("{{compliance_expiration_policy: {{mode: keep_last, duration: {duration}}}}}")
    };
    let of = |duration: &str| {
        [
            file("parameters.yml", &format!("rudder: {}\n", policy(duration))),
            file(
                "groups/g.yml",
                &format!("nodes: []\nproperties: {{rudder: {}}}\n", policy(duration)),
            ),
        ]
    };
    let told = "duration of compliance_expiration_policy is \"P1D\"; expected a number with a unit";
    let errors = errors(&of("P1D"));
    assert!(
        errors.contains(&format!("parameters.yml:1:9: {told}")),
        "{errors}"
    );
    assert!(
        errors.contains(&format!("groups/g.yml:2:22: {told}")),
        "{errors}"
    );
    read(&of("2 days")).unwrap();
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    use super::{FolderError, load};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("parameters.yml"), "a: 1\n").unwrap();
    // A link to a file is as good as one, and what has another name is left alone.
    std::os::unix::fs::symlink(at("parameters.yml"), at("settings.yml")).unwrap();
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at(name), fifo, mode, 0).unwrap();
    };
    pipe("pipe");
    assert_eq!(load(folder.path()).unwrap().len(), 2);
    std::fs::create_dir(at("rules")).unwrap();
    pipe("rules/pipe.yml");
    let error = load(folder.path()).unwrap_err();
    assert!(
        matches!(&error, FolderError::NoFile(path) if path.ends_with("pipe.yml")),
        "{error}"
    );
    // Nor through a link.
    std::fs::remove_file(at("rules/pipe.yml")).unwrap();
    std::os::unix::fs::symlink("../pipe", at("rules/link.yml")).unwrap();
    let error = load(folder.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rules/link.yml is a folder, a pipe"),
        "{error}"
    );
}
