//! Variables, conditions and templates: what one call defines and a later one sees.

use super::*;

/// Runs calls on a machine in memory; type, key and message of each report.
fn ran(mode: PolicyMode, calls: Vec<Call>) -> (Memory, Vec<(String, String, String)>) {
    let mut system = Memory::default();
    system.write("/release", b"12\n").unwrap();
    system
        .write(
            "/t",
            b"{{{vars.os.version}}}{{#classes.new_true}} new{{/classes.new_true}}\n",
        )
        .unwrap();
    system
        .write(
            "/j",
            b"{% if classes.linux %}{{ vars.os.version|int + 1 }}{% endif %}\n",
        )
        .unwrap();
    system
        .commands
        .insert("uname".into(), (0, "Linux\n".into()));
    let mut methods = OnSystem::new(system, Duration::from_secs(1));
    methods.conditions.push("linux".into());
    let outcome = run_on(&policy(mode, calls), &mut methods);
    let log = RunLog::parse(outcome.info.clone(), &outcome.log, &Limits::default()).unwrap();
    let reports = log.reports.iter().filter(|report| report.policy == "t");
    let told = reports.map(|report| {
        let (kind, key) = (report.event_type.to_owned(), report.key_value.to_string());
        (kind, key, report.msg.to_string())
    });
    let told = told.collect();
    (methods.system, told)
}

fn when(condition: &str, call: Call) -> Call {
    Call {
        condition: condition.into(),
        ..call
    }
}

/// Calls by their lines, some behind their condition and a question mark.
fn calls_of(lines: &[&str]) -> Vec<Call> {
    let one = |line: &&str| match line.split_once(" ? ") {
        Some((condition, line)) => when(condition, call_of(line)),
        None => call_of(line),
    };
    lines.iter().map(one).collect()
}

#[test]
fn a_later_call_sees_what_an_earlier_one_defines() {
    let calls = calls_of(&[
        "variable_string prefix=a|name=dir|value=/srv",
        "variable_string_from_file prefix=os|name=version|file_name=/release",
        "variable_string_from_command prefix=os|name=kernel|command=uname",
        "condition_from_variable_match condition=new|variable_name=os.version|expected_match=1[0-9]",
        "new_true.linux ? file_content path=${a.dir}/f|lines=$(os.kernel) ${os.version} ${not.known}",
        "new_false ? file_content path=/never|lines=x",
        "file_lines_present__srv_f_repaired.file_content__srv_f_repaired ? file_from_template_mustache \
         source_template=/t|path=${a.dir}/t",
        "file_from_template_jinja2 source_template=/j|path=/srv/j",
        "variable_string_default prefix=a|name=d|source_variable=no.such|default_value=dflt",
        "condition_from_string_match condition=is|value=${a.d}|regex=dfl.",
        "condition_from_expression condition=both|expression=is_true.!windows",
        "both_true ? report_if_condition report_message=All of it|condition=new_true",
    ]);
    let (system, told) = ran(Enforce, calls);
    let read = |path: &str| String::from_utf8(system.files[path].1.clone()).unwrap();
    assert_eq!(read("/srv/f"), "Linux 12 ${not.known}\n");
    assert_eq!(read("/srv/t"), "12 new\n");
    assert_eq!(read("/srv/j"), "13\n");
    assert!(!system.files.contains_key("/never"));
    let found: Vec<_> = told
        .iter()
        .map(|(kind, key, _)| (kind.as_str(), key.as_str()))
        .collect();
    let success = "result_success";
    assert_eq!(
        found,
        [
            (success, "dir"),
            (success, "version"),
            (success, "kernel"),
            (success, "new"),
            ("result_repaired", "/srv/f"),
            ("result_na", "/never"),
            ("result_repaired", "/srv/t"),
            ("result_repaired", "/srv/j"),
            (success, "d"),
            (success, "is"),
            (success, "both"),
            (success, "All of it"),
        ],
        "{told:?}"
    );
}

#[test]
fn templates_see_the_properties_of_their_node() {
    let mut system = Memory::default();
    let mustache = "{{#vars.node.properties}}{{{site.rack}}}\n\
                    {{#ports}}{{{@}}}={{{.}}};{{/ports}}{{/vars.node.properties}}\n";
    let jinja = "{{ vars.node.properties.site.rack }}{{ vars.node.properties.nothing }}\n";
    system.write("/m", mustache.as_bytes()).unwrap();
    system.write("/j", jinja.as_bytes()).unwrap();
    let filled = |method: &str, template: &str, path: &str| {
        let params = [("source_template", template), ("path", path)];
        call("1", method, &params)
    };
    let calls = vec![
        filled("file_from_template_mustache", "/m", "/a"),
        filled("file_from_template_jinja2", "/j", "/b"),
    ];
    let mut policy = policy(Enforce, calls);
    let ports = serde_json::json!({"http": 80, "https": 443});
    policy.properties.insert("ports".into(), ports);
    let site = serde_json::json!({"rack": "<4>"});
    policy.properties.insert("site".into(), site);
    let mut methods = OnSystem::new(system, Duration::from_secs(1));
    let outcome = run_on(&policy, &mut methods);
    assert_eq!(kinds(&outcome), ["result_repaired"; 2]);
    let read = |path: &str| String::from_utf8(methods.system.files[path].1.clone()).unwrap();
    assert_eq!(read("/a"), "<4>\nhttp=80;https=443;\n");
    assert_eq!(read("/b"), "<4>\n");
}

#[test]
fn a_property_that_the_policy_leaves_to_the_node_is_looked_up() {
    let lines = "${node.properties[site][racks][1] | node} ${node.properties[a|b]|node} \
                 ${node.properties[no]|node}";
    let params = [("path", "/f"), ("lines", lines)];
    let condition = "in_${node.properties[role]|node}";
    let calls = vec![when(condition, call("1", "file_content", &params))];
    let mut policy = policy(Enforce, calls);
    policy.conditions.push("in_front_end".into());
    policy.properties.insert("role".into(), "front-end".into());
    policy.properties.insert("a|b".into(), "c".into());
    let site = serde_json::json!({"racks": ["a", "b"]});
    policy.properties.insert("site".into(), site);
    let mut methods = OnSystem::new(Memory::default(), Duration::from_secs(1));
    let outcome = run_on(&policy, &mut methods);
    assert_eq!(kinds(&outcome), ["result_repaired"]);
    let written = String::from_utf8(methods.system.files["/f"].1.clone()).unwrap();
    assert_eq!(written, "b c ${node.properties[no]|node}\n");
}

#[test]
fn what_is_not_known_or_does_not_match_is_told() {
    let calls = calls_of(&[
        "condition_from_variable_match condition=c|variable_name=no.such|expected_match=.*",
        "c_false ? variable_string prefix=p|name=n|value=hunter2",
        "variable_string_match name=p.n|expected_match=[a-z]+",
        "variable_string_match name=p.n|expected_match=[a-z]+[0-9]",
        "condition_from_variable_existence condition=there|variable_name=p.n",
        "there_true ? report_if_condition report_message=R|condition=nothing",
        "variable_string prefix=p|name=n n|value=x",
        "condition_from_string_match condition=x|value=x|regex=(",
        "variable_string_from_command prefix=p|name=x|command=fails",
        "condition_from_expression condition=x|expression=a.(",
    ]);
    for (mode, kinds) in [
        (
            Enforce,
            [
                "result_error",
                "result_success",
                "result_error",
                "result_success",
                "result_success",
                "result_error",
                "result_error",
                "result_error",
                "result_error",
                "result_error",
            ],
        ),
        (
            Audit,
            [
                "audit_error",
                "audit_compliant",
                "audit_noncompliant",
                "audit_compliant",
                "audit_compliant",
                "audit_noncompliant",
                "audit_error",
                "audit_error",
                "audit_error",
                "audit_error",
            ],
        ),
    ] {
        let (_, told) = ran(mode, calls.clone());
        let found: Vec<_> = told.iter().map(|(kind, ..)| kind.as_str()).collect();
        assert_eq!(found, kinds, "{told:?}");
        assert!(
            told.iter()
                .all(|(.., message)| !message.contains("hunter2")),
            "{told:?}"
        );
    }
}

#[test]
fn a_variable_has_a_bound() {
    let big = "x".repeat((1 << 20) + 1);
    let calls = vec![call(
        "1",
        "variable_string",
        &[("prefix", "p"), ("name", "n"), ("value", &big)],
    )];
    let (_, told) = ran(Enforce, calls);
    assert_eq!(told[0].0, "result_error");
    assert!(told[0].2.contains("p.n is too much"), "{told:?}");
}

#[test]
fn a_condition_that_ends_otherwise_is_told_by_its_other_names() {
    let calls = calls_of(&[
        "file_present path=/release",
        "file_present__release_not_repaired ? file_absent path=/none",
        "service_started name=none",
        "service_started_none_not_ok.service_started_none_failed ? file_absent path=/x",
    ]);
    let (_, told) = ran(Enforce, calls);
    let found: Vec<_> = told.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(
        found,
        [
            "result_success",
            "result_success",
            "result_error",
            "result_success"
        ]
    );
}
