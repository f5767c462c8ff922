use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Default, PartialEq)]
struct Inner {
    wait: Duration,
    names: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Settings {
    name: String,
    port: Option<u16>,
    count: u32,
    limit: usize,
    on: bool,
    colour: u8,
    inner: Inner,
    more: Option<Inner>,
    pairs: Vec<(String, String)>,
    secret: String,
}

const COLOURS: [(&str, u8); 3] = [("red", 0), ("green", 1), ("blue", 2)];

fn describe(form: &mut Form<'_>, settings: &mut Settings) {
    form.value("name", "A name.", &mut settings.name);
    form.value("port", "A port.", &mut settings.port);
    form.within("count", "A number.", 0..=9, &mut settings.count);
    form.size("limit", "A size.", &mut settings.limit);
    form.value("on", "Whether.", &mut settings.on);
    form.choice("colour", "A colour.", &COLOURS, &mut settings.colour);
    form.value("pairs", "Names with texts.", &mut settings.pairs);
    form.secret_file("secret_file", "A secret.", &mut settings.secret);
    form.ignored(&[("old", "it is gone")]);
    form.section("inner", "Inside.", |form| inner(form, &mut settings.inner));
    form.optional("more", "More.", &mut settings.more, inner);
}

fn inner(form: &mut Form<'_>, inner: &mut Inner) {
    form.value("wait", "How long.", &mut inner.wait);
    form.value("names", "Names.", &mut inner.names);
}

fn source(text: &str) -> Source {
    Source {
        name: "x.conf".to_owned(),
        text: text.to_owned(),
    }
}

fn read(
    root: Result<Node, Vec<Problem>>,
    source: &Source,
) -> Result<(Settings, Vec<String>), Problems> {
    let root = root.map_err(|problems| Problems::of(source, problems))?;
    let mut form = Form::reading(&root, Path::new("/nonexistent"));
    let mut settings = Settings::default();
    describe(&mut form, &mut settings);
    let warnings = form.finish(source)?;
    Ok((settings, warnings))
}

fn toml(text: &str) -> Result<(Settings, Vec<String>), Problems> {
    let source = source(text);
    read(parse_toml(&source), &source)
}

fn yaml(text: &str) -> Result<(Settings, Vec<String>), Problems> {
    let source = source(text);
    read(parse_yaml(&source), &source)
}

#[test]
fn both_languages_say_the_same() {
    let expected = Settings {
        name: "é".to_owned(),
        port: Some(80),
        limit: 65_536,
        on: true,
        colour: 2,
        inner: Inner {
            wait: Duration::from_millis(1500),
            names: vec!["a".to_owned(), "b".to_owned()],
        },
        more: Some(Inner::default()),
        ..Settings::default()
    };
    let from_toml = toml(
        "name = \"é\"\nport = 80\nlimit = \"64KiB\"\non = true\ncolour = \"blue\"\n\
         [inner]\nwait = \"1.5s\"\nnames = [\"a\", \"b\"]\n[more]\n",
    );
    assert_eq!(from_toml.unwrap().0, expected);
    let from_yaml = yaml(
        "name: é\nport: 80\nlimit: 64KiB\non: true\ncolour: blue\ncount: ~\n\
         inner: {wait: 1.5s, names: [a, b]}\nmore: {}\n",
    );
    assert_eq!(from_yaml.unwrap().0, expected);
    assert_eq!(yaml("").unwrap().0, Settings::default());
    assert_eq!(yaml("---\n").unwrap().0, Settings::default());
}

#[test]
fn a_problem_is_shown_at_its_place() {
    let problems = toml("name = \"a\"\nnme = 1\n").unwrap_err().to_string();
    assert_eq!(
        problems,
        "x.conf:2:1: unknown key \"nme\"\n   2 | nme = 1\n     | ^^^\n     help: did you mean \"name\"?"
    );
    let problems = yaml("inner:\n  wait: 5\n").unwrap_err().to_string();
    assert_eq!(
        problems,
        "x.conf:2:9: expected a length of time such as \"30s\" or \"1m30s\", found 5\n   \
         2 |   wait: 5\n     |         ^"
    );
}

#[test]
fn every_kind_of_mistake_is_named_with_its_line() {
    for (text, expected) in [
        ("name =\n", "x.conf:1:7: this is not TOML"),
        ("name = 1", "x.conf:1:8: expected a text, found 1"),
        (
            "port = 70000",
            "x.conf:1:8: expected a whole number from 0 to 65535, found 70000",
        ),
        (
            "\ncount = 10",
            "x.conf:2:9: expected a number from 0 to 9, found 10",
        ),
        ("limit = 5", "expected a size such as \"64KiB\""),
        ("on = \"yes\"", "expected true or false, found \"yes\""),
        (
            "colour = \"gren\"",
            "expected one of red, green, blue, found \"gren\"\n",
        ),
        ("colour = \"gren\"", "help: did you mean \"green\"?"),
        ("colour = 1", "expected one of red, green, blue"),
        ("inner = 1", "expected a table, found a number"),
        ("[inner]\nzzzzzz = 1", "help: keys here: wait, names"),
        ("[inner]\nnames = [1]", "expected a list of texts"),
        (
            "secret_file = \"none\"",
            "x.conf:1:15: cannot read /nonexistent/none: ",
        ),
        (
            "secret_file = \"/dev/zero\"",
            "cannot read /dev/zero: it has more than 4194304 bytes",
        ),
        ("name = 1979-05-27", "dates have no meaning here"),
        ("name = \"a\"\nname = \"b\"", "this is not TOML"),
    ] {
        let problems = toml(text).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}\nlacks {expected}");
    }
    for (text, expected) in [
        ("name: [", "x.conf:"),
        ("- a", "expected keys with values, found a list"),
        ("a: 1\n---\nb: 1", "a second document begins here"),
        ("[1]: 2", "expected a name here"),
        ("name: a\nname: b", "this is not YAML"),
    ] {
        let problems = yaml(text).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}\nlacks {expected}");
    }
    let deep = format!("name = {}{}", "[".repeat(60), "]".repeat(60));
    assert!(toml(&deep).is_err());
    let deep = format!("name: {}{}", "[".repeat(60), "]".repeat(60));
    assert!(yaml(&deep).is_err());
}

#[test]
fn aliases_stand_for_no_more_than_memory_holds() {
    let (settings, _) = yaml("inner: &i {wait: 1s}\nmore: *i").unwrap();
    assert_eq!(settings.more, Some(settings.inner));

    let ten = |value: &str| [value; 10].join(", ");
    let list = |name: &str, value: &str| format!("{name}: &{name} [{}]\n", ten(value));
    let key = |name: &str, value: &str| format!("{name}: &{name} {{? [{}] : y}}\n", ten(value));
    let names = [
        ("a", "x"),
        ("b", "*a"),
        ("c", "*b"),
        ("d", "*c"),
        ("e", "*d"),
    ];
    let lists: String = names.map(|(name, value)| list(name, value)).concat();
    let keys: String = names.map(|(name, value)| key(name, value)).concat();
    let text = format!(
        "a: &a {}\nb: [{}*a]\n",
        "x".repeat(64_000),
        "*a, ".repeat(100)
    );
    for (bomb, line) in [(lists, 5), (keys, 5), (text, 2)] {
        let problems = yaml(&bomb).unwrap_err().to_string();
        let place = format!("x.conf:{line}:");
        assert!(problems.starts_with(&place), "{problems}");
        let expected = "stand for more than 100000 values";
        assert!(problems.contains(expected), "{problems}");
    }
    // So many levels would not fit on the stack.
    let problems = yaml(&"- ".repeat(100_000)).unwrap_err().to_string();
    assert!(
        problems.contains("nested more than 32 levels deep"),
        "{problems}"
    );
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let (settings, warnings) = yaml("old: {a: 1}\ncount: 3").unwrap();
    assert_eq!(settings.count, 3);
    assert_eq!(
        warnings,
        ["x.conf:1:1: \"old\" has no effect here: it is gone\n   1 | old: {a: 1}\n     | ^^^"]
    );
}

#[test]
fn all_problems_are_told_at_once_and_in_order() {
    let problems = toml("a1 = 1\nb1 = 2\n[inner]\nwait = 1\n")
        .unwrap_err()
        .to_string();
    let lines: Vec<&str> = problems
        .lines()
        .filter(|line| line.starts_with("x.conf:"))
        .collect();
    assert_eq!(lines.len(), 3, "{problems}");
    assert!(lines.is_sorted());
    let many: String = (0..50).map(|n| format!("k{n} = 1\n")).collect();
    assert!(
        toml(&many)
            .unwrap_err()
            .to_string()
            .ends_with("x.conf: 30 more problems")
    );
}

#[test]
fn lengths_of_time_are_read_as_go_writes_them() {
    for (text, seconds) in [
        ("0", 0.0),
        ("+0", 0.0),
        ("20s", 20.0),
        ("1h2m3.5s", 3723.5),
        ("1.5h", 5400.0),
        ("3s1h", 3603.0),
        ("250ms", 0.25),
        ("+5us", 5e-6),
    ] {
        assert_eq!(
            parse_go_duration(text),
            Some(Duration::from_secs_f64(seconds)),
            "{text}"
        );
    }
    for text in [
        "",
        "+",
        "5",
        "-1s",
        "s",
        "1x",
        "1..5s",
        "1e3s",
        "99999999999h",
    ] {
        assert_eq!(parse_go_duration(text), None, "{text}");
    }
}

#[test]
fn a_secret_does_not_keep_the_end_of_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s"), "hush \r\n").unwrap();
    let source = source("secret_file = \"s\"");
    let root = parse_toml(&source).unwrap();
    let mut form = Form::reading(&root, folder.path());
    let mut settings = Settings::default();
    describe(&mut form, &mut settings);
    form.finish(&source).unwrap();
    assert_eq!(settings.secret, "hush ");
}

fn any_inner() -> impl Strategy<Value = Inner> {
    (
        0_u64..u64::MAX / 2,
        prop::collection::vec("\\PC{0,8}", 0..4),
    )
        .prop_map(|(nanos, names)| Inner {
            wait: Duration::from_nanos(nanos),
            names,
        })
}

prop_compose! {
    fn any_settings()(
        name in "(\\PC|[\"\\\\\n\t']){0,12}",
        port in any::<Option<u16>>(),
        count in 0_u32..=9,
        limit in 0_usize..=1 << 50,
        on in any::<bool>(),
        colour in 0_u8..3,
        inner in any_inner(),
        more in prop::option::of(any_inner()),
        pairs in prop::collection::btree_map("\\PC{0,6}", "\\PC{0,6}", 0..4),
    ) -> Settings {
        let pairs = pairs.into_iter().collect();
        Settings { name, port, count, limit, on, colour, inner, more, pairs, secret: String::new() }
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(settings in any_settings()) {
        let mut form = Form::printing();
        describe(&mut form, &mut settings.clone());
        let text = form.into_text();
        match toml(&text) {
            Ok((read, warnings)) => {
                prop_assert_eq!(warnings, Vec::<String>::new());
                let mut read = read;
                read.pairs.sort();
                prop_assert_eq!(read, settings);
            }
            Err(problems) => prop_assert!(false, "{}\n{}", problems, text),
        }
    }

    #[test]
    fn no_text_brings_it_down(text in "(\\PC|[\n\t:{}\\[\\]\"'#&*!|>-]){0,60}") {
        let _ = toml(&text);
        let _ = yaml(&text);
    }
}

fn read_file(bytes: &[u8]) -> Result<Source, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, bytes).unwrap();
    Source::read(&path).map_err(|problems| {
        let said = problems.to_string();
        said.replace(&folder.path().display().to_string(), "")
    })
}

#[test]
fn files_that_are_no_settings_are_refused() {
    assert_eq!(read_file(b"a = 1\n").unwrap().text, "a = 1\n");
    let said = read_file("a = 1\nb = \"é\"\nc = é\u{0}".as_bytes()).map(|source| source.text);
    assert_eq!(said.as_deref(), Ok("a = 1\nb = \"é\"\nc = é\u{0}"));
    let said = read_file(b"a = 1\nb = \"\xc3\xa9\xff\"\n").unwrap_err();
    assert!(said.starts_with("/settings.toml:2:7: "), "{said}");
    let said = read_file(&vec![b'#'; MOST_BYTES + 1]).unwrap_err();
    assert!(said.contains("larger than 4194304 bytes"), "{said}");
    assert!(read_file(&vec![b'#'; MOST_BYTES]).is_ok());
    let said = Source::read(&std::env::temp_dir()).unwrap_err().to_string();
    assert!(said.contains("directory"), "{said}");
    // It never ends.
    let said = Source::read(Path::new("/dev/zero"))
        .unwrap_err()
        .to_string();
    assert!(said.contains("larger than"), "{said}");
}

#[test]
fn a_problem_is_short_however_long_what_was_found_is() {
    let long = "é".repeat(100_000);
    let source = Source {
        name: "a.toml".to_owned(),
        text: format!("{long} = 1\n"),
    };
    let problem = Problem::new(0..long.len(), format!("unknown key {long:?}")).help(&*long);
    let said = source.show(&problem);
    assert!(said.chars().count() < 10_000, "{said}");
    assert!(said.starts_with("a.toml:1:1: unknown key \"é"), "{said}");
}

/// As another program's file.
fn foreign(text: &str) -> Result<(Settings, Vec<String>), Problems> {
    let source = source(text);
    let root = parse_yaml(&source).map_err(|problems| Problems::of(&source, problems))?;
    let mut form = Form::reading_foreign(&root, &source, Path::new("/nonexistent"));
    let mut settings = Settings::default();
    describe(&mut form, &mut settings);
    let warnings = form.finish(&source)?;
    Ok((settings, warnings))
}

#[test]
fn scalars_of_other_programs_are_coerced() {
    let (settings, _) =
        foreign("é: ü\nname: 007\ncount: 3.0\non: yes\ninner: {names: [1, true, 2.50]}").unwrap();
    assert_eq!(
        (&*settings.name, settings.count, settings.on),
        ("007", 3, true)
    );
    assert_eq!(settings.inner.names, ["1", "true", "2.50"]);
    for text in [
        "count: 3.5",
        "count: \"3\"",
        "on: 1",
        "name: [a]",
        "inner: {wait: 5}",
    ] {
        assert!(foreign(text).is_err(), "{text}");
        assert!(yaml(text).is_err(), "{text}");
    }
    assert!(
        yaml("name: 007").is_err(),
        "our own files say what they mean"
    );
}

#[test]
fn unknown_keys_of_other_programs_are_warnings_in_their_order() {
    let (_, warnings) = foreign("zzzzzz: 1\nold: 1\nnam: x\n").unwrap();
    assert!(
        warnings[0].starts_with("x.conf:1:1: unknown key \"zzzzzz\" has no effect here"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("\"old\" has no effect here"),
        "{warnings:?}"
    );
    assert!(
        warnings[2].contains("did you mean \"name\"?"),
        "{warnings:?}"
    );
    // Beside a mistake they are told too: one may be the reason of the other.
    let problems = foreign("nam: x\ncount: x\n").unwrap_err().to_string();
    assert!(problems.contains("did you mean \"name\"?"), "{problems}");
}
