use proptest::prelude::*;

use super::*;

const MOST: usize = 200;

fn read(text: &[u8]) -> Result<Vec<(u64, Vec<String>)>, CsvError> {
    let mut reader = Reader::new(text, MOST);
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        let record = record.whole()?;
        let cells = record.cells.iter().map(|cell| cell.text.clone());
        records.push((record.line, cells.collect()));
    }
    Ok(records)
}

#[test]
fn fields_with_commas_quotes_and_line_breaks_are_quoted() {
    let mut out = String::new();
    let cells = ["a", "b,c", "say \"x\"", "two\nlines", ""];
    push_record(&mut out, cells);
    assert_eq!(out, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\",\n");
    assert_eq!(read(out.as_bytes()).unwrap()[0].1, cells);
}

#[test]
fn a_record_knows_the_line_it_began_on() {
    let records = read(b"a\r\n\"b\nb\"\r\nc\n").unwrap();
    let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2, 4]);
    assert_eq!(records[1].1, ["b\nb"]);
}

#[test]
fn quotes_tell_an_empty_text_from_none() {
    let mut reader = Reader::new(&b",\"\"\n\n\"\"\n"[..], MOST);
    let first = reader.next_record().unwrap().unwrap();
    let quoted: Vec<bool> = first.cells.iter().map(|cell| cell.quoted).collect();
    assert_eq!(quoted, [false, true]);
    assert!(reader.next_record().unwrap().unwrap().is_blank());
    assert!(!reader.next_record().unwrap().unwrap().is_blank());
    assert_eq!(reader.next_line(), 4);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let long = "x".repeat(MOST + 1);
    let endless = format!("a\n\"{}", "x\n".repeat(MOST));
    let cases: [(&[u8], u64, &str); 9] = [
        (b"a\n\"b", 2, "never closed"),
        (b"a\n\"b\n\n\n", 2, "never closed"),
        (b"a\nx\"y\"\n", 2, "a quote within a field"),
        (b"a\n1,x\"y\n", 2, "a quote within a field"),
        (b"\"a\"b\n", 1, "text after a closing quote"),
        (b"\"a\n\"\r,b\n", 1, "text after a closing quote"),
        (b"t_s,count\n1,4000\n2,40", 3, "in the middle of this line"),
        (b"a\n\xff\n", 2, "not UTF-8"),
        (long.as_bytes(), 1, "longer than 200 bytes"),
    ];
    for (text, line, part) in cases {
        let error = read(text).expect_err(part);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = read(endless.as_bytes()).unwrap_err();
    assert!(matches!(error.problem, Problem::TooLong(MOST)), "{error}");
    // It is refused before all of it is read.
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let error = Reader::new(endless, MOST).next_record().unwrap_err();
    assert!(matches!(error.problem, Problem::TooLong(MOST)), "{error}");
}

proptest! {
    #[test]
    fn reading_gives_back_what_was_written(
        records in prop::collection::vec(
            prop::collection::vec(".{0,9}|[,\"\r\n]{0,4}", 1..5), 0..8
        )
    ) {
        let mut out = String::new();
        for record in &records {
            push_record(&mut out, record.iter().map(String::as_str));
        }
        let read = read(out.as_bytes()).unwrap();
        let found: Vec<Vec<String>> = read.into_iter().map(|(_, cells)| cells).collect();
        prop_assert_eq!(found, records);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a,\"\r\n]{0,40}") {
        if let Err(error) = read(text.as_bytes()) {
            prop_assert!(error.line <= text.matches('\n').count() as u64 + 1);
        }
    }
}
