use proptest::prelude::*;

use super::*;

fn scope() -> Scope {
    let constants = [
        ("cells".to_owned(), Constant::Integer(100)),
        ("dir".to_owned(), Constant::Text("a b{".to_owned())),
        ("bad".to_owned(), Constant::Broken),
    ];
    Scope {
        constants: constants.into(),
        systems: vec!["bbs".to_owned()],
        ports: [("bbs".to_owned(), vec!["status".to_owned()])].into(),
        copies: [("bbs".to_owned(), Some(3))].into(),
        own: Some("bbs".to_owned()),
        ..Scope::default()
    }
}

fn template(text: &str, place: Place) -> Result<String, Vec<String>> {
    let mut problems = Vec::new();
    let filled = scope().template(&Text::at(text, 0..1), place, &mut problems);
    match filled {
        Some(template) if problems.is_empty() => Ok(template.to_string()),
        _ => Err(problems
            .into_iter()
            .map(|problem| problem.message)
            .collect()),
    }
}

#[test]
fn constants_are_filled_in_and_references_stay() {
    let filled = template("{dir}/{work} -n {cells} {bbs.addr} {{x}}", Place::System).unwrap();
    assert_eq!(filled, "a b{{/{work} -n 100 {bbs.addr} {{x}}");
}

#[test]
fn further_ports_are_known_by_name() {
    let text = "{addr.status} {port.status} {bbs.addr.status} {bbs.port.status}";
    assert_eq!(template(text, Place::System).unwrap(), text);
    assert!(template("{bbs.addr.status}", Place::Command).is_ok());
    assert!(template("{addr.status}", Place::Command).is_err());
    for wrong in ["{addr.sttus}", "{bbs.addr.sttus}"] {
        let problems = template(wrong, Place::System).unwrap_err();
        assert!(
            problems[0].contains("no further port \"sttus\""),
            "{problems:?}"
        );
    }
    assert!(template("{bbs.status}", Place::System).is_err());
}

#[test]
fn copies_are_named_one_by_one_or_all_together() {
    let same = [
        "{bbs[2].addr} {bbs[1].port} {bbs[1].addr.status} {bbs[2].port.status}",
        "{bbs[*].addr} {bbs[*].port.status} {bbs[* ].addr} {bbs[*;].addr}",
        "{bbs[*]:n{index}=http://{addr.status}} {bbs[*, ]:{work}/{index}}",
        "[{bbs[*]:{{\"id\": {index}}}}]",
        "{bbs[*]:{bbs.addr}} {bbs[*]:{index}}",
    ];
    for text in same {
        for place in [Place::System, Place::Command] {
            assert_eq!(template(text, place), Ok(text.to_owned()));
        }
    }
    let same_as = [
        // The first copy is the one that has no number, and is led through the same proxy.
        ("{bbs[0].addr}", "{bbs.addr}"),
        ("{bbs[0].port.status}", "{bbs.port.status}"),
        ("{bbs[*,].addr}", "{bbs[*].addr}"),
        ("{bbs[*]:{addr.status}}", "{bbs[*].addr.status}"),
        ("{bbs[*]:{cells}-{index}}", "{bbs[*]:100-{index}}"),
    ];
    for (written, meant) in same_as {
        assert_eq!(template(written, Place::System), Ok(meant.to_owned()));
    }
    assert!(template("{bbs[1].addr}", Place::Plain).is_err());
}

#[test]
fn each_place_allows_its_own_references() {
    assert!(template("{port} {addr} {index} {work} {bbs.port}", Place::System).is_ok());
    assert!(template("{work} {bbs.port}", Place::Command).is_ok());
    for text in ["{port}", "{addr}", "{index}"] {
        assert!(template(text, Place::Command).is_err(), "{text}");
    }
    for text in ["{port}", "{work}", "{bbs.addr}"] {
        assert!(template(text, Place::Plain).is_err(), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let message = |text| template(text, Place::System).unwrap_err().join("; ");
    assert_eq!(message("{cell}"), "unknown name {cell}");
    assert_eq!(
        message("{bsb.addr} {bbs.adr}"),
        "unknown system \"bsb\"; a system has no \"adr\" to refer to"
    );
    assert_eq!(message("a { b"), "this brace is not closed");
    assert_eq!(message("a } b"), "this brace closes nothing");
    assert_eq!(message("{}"), "there is no name in these braces");
    assert_eq!(message("{bad}"), "");
}

#[test]
fn variables_of_requests_stay_and_constants_within_them_are_filled_in() {
    let request = |text: &str| {
        let mut scope = scope();
        scope.taken = vec!["token".to_owned()];
        let mut problems = Vec::new();
        let request = scope.request(&Text::at(text, 0..1), &mut problems);
        match request {
            Some(request) => Ok((
                request.template.to_string(),
                request.text.as_str().to_owned(),
            )),
            None => Err(problems.remove(0).message),
        }
    };
    let text = "{bbs.addr}/{zipf 1.1 {cells}}/{seq}/{token}?{{{uuid}}}";
    let both = |written: &str, shown: &str| Ok((written.to_owned(), shown.to_owned()));
    assert_eq!(
        request(text),
        both(
            "{bbs.addr}/{zipf 1.1 100}/{seq}/{token}?{{{uuid}}}",
            "127.0.0.1:1/{zipf 1.1 100}/{seq}/{token}?{{{uuid}}}"
        )
    );
    assert_eq!(request("{dir}"), both("a b{{", "a b{{"));
    let json = "{\"a\": {\"b\": {seq}}, \"c\": {}}";
    let written = "{{\"a\": {{\"b\": {seq}}}, \"c\": {{}}}}";
    assert_eq!(request(json), both(written, written));
    assert_eq!(request(written), both(written, written));
    assert_eq!(request("}a}}"), both("}}a}}}}", "}a}}"));
    assert_eq!(
        request("{tokn}").unwrap_err(),
        "unknown name {tokn}".to_owned()
    );
    assert_eq!(
        request("{zipf 1.1 {cels}}").unwrap_err(),
        "unknown name {cels}".to_owned()
    );
    assert_eq!(
        request("{zipf 1.1 5").unwrap_err(),
        "this brace is not closed".to_owned()
    );
    assert!(template("{seq}", Place::Command).is_err());
}

#[test]
fn the_filled_text_has_a_bound() {
    let mut scope = Scope::default();
    scope
        .constants
        .insert("big".to_owned(), Constant::Text("x".repeat(LONGEST)));
    let mut problems = Vec::new();
    assert!(
        scope
            .text(&Text::at("{big}{big}", 0..1), &mut problems)
            .is_none()
    );
    assert_eq!(problems.len(), 1);
}

proptest! {
    #[test]
    fn a_template_reads_back_as_it_is_written(text in "([a-z {}]|\\{work\\}|\\{bbs\\.addr\\}|\\{bbs\\[1\\]\\.addr\\}|\\{bbs\\[\\*[ ;]?\\]:|\\{index\\}|\\{\\{){0,12}") {
        if let Ok(written) = template(&text, Place::System) {
            prop_assert_eq!(template(&written, Place::System), Ok(written.clone()));
        }
    }

    #[test]
    fn text_without_braces_is_itself(text in "[^{}]{0,40}") {
        prop_assert_eq!(template(&text, Place::Plain), Ok(text));
    }

    #[test]
    fn nothing_behind_a_bracket_breaks_it(text in "\\{bbs\\[([*0-2\\]:.{}]|addr|\\PC){0,12}") {
        for place in [Place::Plain, Place::System, Place::Command, Place::Request] {
            let _ = template(&text, place);
        }
    }

    #[test]
    fn no_text_breaks_it(text in "\\PC{0,40}") {
        let _ = template(&text, Place::Command);
    }
}
