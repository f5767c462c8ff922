use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Table, CsvError> {
    Table::read_csv(text.as_bytes(), "task")
}

fn write(table: &Table) -> String {
    let mut out = Vec::new();
    table.write_csv(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn row(id: &str, group: Option<&str>, at_ns: &[Option<i64>]) -> Row {
    Row {
        id: id.into(),
        group: group.map(Arc::from),
        at_ns: at_ns.to_vec(),
    }
}

#[test]
fn writes_what_the_format_says() {
    let table = Table {
        name: "task".into(),
        points: vec!["desired".into(), "a, b".into()],
        rows: vec![
            row("t-1", Some("cell-1"), &[Some(0), Some(-5)]),
            row(
                "with \"quotes\"\nand, more",
                None,
                &[None, Some(1_000_000_000)],
            ),
            row("", Some(""), &[None, None]),
        ],
    };
    let expected = "id,group,desired,\"a, b\"\n\
                    t-1,cell-1,0,-5\n\
                    \"with \"\"quotes\"\"\nand, more\",,,1000000000\n\
                    \"\",\"\",,\n";
    assert_eq!(write(&table), expected);
    assert_eq!(read(expected).unwrap(), table);
}

#[test]
fn reads_other_programs_forms() {
    let table = read("id,group,\"a\"\r\n\"x\",,\"7\"\r\ny,g,\r\n").unwrap();
    assert_eq!(table.points, ["a"]);
    assert_eq!(
        table.rows,
        [row("x", None, &[Some(7)]), row("y", Some("g"), &[None])]
    );
    assert_eq!(read("id,group\nx,\n").unwrap().rows, [row("x", None, &[])]);
}

#[test]
fn says_what_is_wrong_and_where() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        error(""),
        "line 1: expected a header that begins with `id,group`, found ``"
    );
    assert_eq!(
        error("id,a\n"),
        "line 1: expected a header that begins with `id,group`, found `id,a`"
    );
    assert_eq!(
        error("id,group,a\nx,,1\ny,\n"),
        "line 3: expected 3 cells, found 2"
    );
    assert_eq!(
        error("id,group,a\n\"x\ny\",,1\nz,,1,2\n"),
        "line 4: expected 3 cells, found 4"
    );
    assert_eq!(error("id,group,a\n\n"), "line 2: expected 3 cells, found 1");
    assert_eq!(
        error("id,group,a\nx,,1.5\n"),
        "line 2: `a` should be whole nanoseconds or empty, found `1.5`"
    );
    assert!(error("id,group,a\nx,,9999999999999999999\n").starts_with("line 2: `a` should be"));
    for quote in [
        "id,group\nx\"y,\"\n",
        "id,group\n\"x\"y,\n",
        "id,group\nx,\"y\n\n\n",
    ] {
        assert!(
            error(quote).starts_with("line 2: ") && error(quote).contains("quote"),
            "{quote}"
        );
    }
    assert_eq!(
        error("id,group,a\nx,,1000\ny,,20"),
        "line 3: the file ends in the middle of this line"
    );
    let bytes: &[u8] = b"id,group\nx,\n\xff,\n";
    let error = Table::read_csv(bytes, "task").unwrap_err();
    assert_eq!(error.to_string(), "line 3: the text is not UTF-8");
}

#[test]
fn a_record_without_end_is_refused_early() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let error = Table::read_csv(endless, "task").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 1: the record is longer"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn gives_back_exactly_what_was_written(
        points in prop::collection::vec("[a-z\",\r\n ]{0,6}", 0..4),
        rows in prop::collection::vec(
            (".{0,6}|[\",\r\n]{0,4}", prop::option::of(".{0,6}|[\",\r\n]{0,4}"), any::<[Option<i64>; 4]>()),
            0..8,
        ),
    ) {
        let rows = rows.iter().map(|(id, group, at)| row(id, group.as_deref(), &at[..points.len()]));
        let table = Table { name: "task".into(), rows: rows.collect(), points };
        prop_assert_eq!(read(&write(&table)).unwrap(), table);
    }

    #[test]
    fn never_panics(text in "(id,group|[a1\",\r\n])*") {
        let _ = read(&format!("id,group,a\n{text}"));
        let _ = read(&text);
    }
}
