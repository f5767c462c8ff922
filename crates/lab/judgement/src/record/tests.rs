use proptest::prelude::*;

use super::*;
use crate::Unit;

fn metric(name: &str, unit: Unit, value: f64) -> MetricValue {
    MetricValue {
        metric: Metric {
            name: name.to_owned(),
            unit,
            direction: Direction::LowerIsBetter,
        },
        value,
        replicates: vec![0.1, 0.2],
    }
}

fn record() -> Record {
    let environment = Fingerprint {
        plan_hash: "abc".to_owned(),
        cpu_model: "EPYC 7B13".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.1".to_owned(),
        headroom_version: "0.1.0".to_owned(),
        versions: BTreeMap::from([("router".to_owned(), "1.2".to_owned())]),
        by_hand: Vec::new(),
    };
    let metrics = vec![metric("p99", Unit::Seconds, 0.012)];
    Record::new(
        "run-1".to_owned(),
        "c0ffee".to_owned(),
        1,
        environment,
        metrics,
    )
}

#[test]
fn a_record_is_a_line_with_units_in_its_names() {
    let line = write_record(&record()).unwrap();
    let expected = concat!(
        r#"{"schema":1,"run":"run-1","commit":"c0ffee","started_at_unix_ns":1,"#,
        r#""environment":{"plan_hash":"abc","cpu_model":"EPYC 7B13","cores":2,"#,
        r#""memory_bytes":8589934592,"kernel":"Linux 6.1","headroom_version":"0.1.0","#,
        r#""versions":{"router":"1.2"}},"metrics":[{"name":"p99","unit":"seconds","#,
        r#""direction":"lower_is_better","value":0.012,"replicates":[0.1,0.2]}]}"#,
        "\n"
    );
    assert_eq!(line, expected);
    let again = format!("{line}\n{line}");
    assert_eq!(read_records(&again).unwrap(), [record()]);
    let other = line.replace("0.012", "0.013");
    let error = read_records(&format!("{line}{other}")).unwrap_err();
    assert!(error.to_string().contains("\"run-1\" again"), "{error}");
    assert!(read_records("").unwrap().is_empty());
}

#[test]
fn errors_name_the_line() {
    let good = write_record(&record()).unwrap();
    let wrong = |line: &str| {
        let text = format!("{good}\n{line}\n");
        read_records(&text).unwrap_err().to_string()
    };
    assert!(wrong("{").starts_with("line 3 of the history: expected the record of a run"));
    assert!(wrong("{}").contains("missing field `run`"));
    assert!(wrong(&good.replace("\"schema\":1", "\"schema\":2")).contains("schema 2"));
    assert!(wrong(&good.replace("\"seconds\"", "\"weeks\"")).contains("weeks"));
    assert!(wrong(&good.replace("0.012", "null")).contains("line 3"));
    assert!(wrong(&good[..90]).contains("EOF"));
    assert!(wrong(&format!("\"{}\"", "x".repeat(LINE_BYTES_MOST))).contains("more than"));
    // What a later version adds is no error.
    let more = good.replace("\"run\"", "\"new_key\":[1],\"run\"");
    assert_eq!(read_records(&more).unwrap(), [record()]);
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let mut twice = record();
    twice.metrics.push(twice.metrics[0].clone());
    let error = write_record(&twice).unwrap_err().to_string();
    assert_eq!(
        error,
        "run \"run-1\" cannot be recorded: metric \"p99\" twice"
    );
    let line = write_record(&record()).unwrap();
    let (metrics, value) = (line.find('[').unwrap() + 1, line.rfind("]}").unwrap());
    let doubled = format!("{},{}", &line[..value], &line[metrics..]);
    assert!(
        read_records(&doubled)
            .unwrap_err()
            .to_string()
            .contains("twice")
    );
    let mut endless = record();
    endless.metrics[0].replicates[1] = f64::INFINITY;
    assert!(write_record(&endless).is_err());
}

#[test]
fn what_differs_is_said_and_weighed() {
    let base = record();
    assert!(differences(&base, &base).is_empty());
    // Another version is what comparing is for.
    let mut new = record();
    new.commit = "decaf".to_owned();
    assert!(differences(&base, &new).is_empty());

    new.environment.cpu_model = String::new();
    new.environment.kernel = "Linux 6.8".to_owned();
    new.environment.versions.clear();
    new.metrics[0].metric.unit = Unit::Count;
    new.metrics.push(metric("rate", Unit::PerSecond, 3.0));
    let found = differences(&base, &new);
    let said: Vec<(Weight, &str)> = found
        .iter()
        .map(|difference| (difference.weight, difference.sentence.as_str()))
        .collect();
    let expected = [
        (
            Weight::Forbids,
            "the processor differs: EPYC 7B13 and unknown",
        ),
        (
            Weight::Forbids,
            "the unit of p99 differs: seconds and count",
        ),
        (
            Weight::Mentioned,
            "the kernel differs: Linux 6.1 and Linux 6.8",
        ),
        (
            Weight::Mentioned,
            "the version of router differs: 1.2 and unknown",
        ),
    ];
    assert_eq!(said, expected);
}

#[test]
fn the_line_of_the_documentation_is_read() {
    let page = include_str!("../../../../../docs/judgement.md");
    let line = page.lines().find(|line| line.starts_with("{\"run\""));
    let read = read_records(line.unwrap()).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].metrics[0].value, 1.2e-7);
    // The least of it.
    let least = r#"{"run":"a","commit":"b","metrics":[]}"#;
    let read = read_records(least).unwrap();
    assert_eq!(read[0].environment, Fingerprint::default());
    assert!(differences(&read[0], &read[0]).is_empty());
    let said = differences(&read[0], &record());
    let said: Vec<&str> = said.iter().map(|one| one.sentence.as_str()).collect();
    assert!(
        said.contains(&"the memory differs: unknown and 8 GiB"),
        "{said:?}"
    );
    assert!(
        said.contains(&"the number of cores differs: unknown and 2"),
        "{said:?}"
    );
}

#[test]
fn names_that_say_nothing_are_not_written() {
    let with = |change: fn(&mut Record)| {
        let mut record = record();
        change(&mut record);
        write_record(&record).map_err(|error| error.to_string())
    };
    let wrong: [fn(&mut Record); 4] = [
        |record| record.commit = String::new(),
        |record| record.commit = "a\nb".to_owned(),
        |record| record.metrics[0].metric.name = " ".to_owned(),
        |record| record.run = String::new(),
    ];
    for change in wrong {
        assert!(with(change).unwrap_err().contains("on one line"));
    }
    assert!(with(|record| record.commit = "release 1.2 é".to_owned()).is_ok());
}

#[test]
fn a_run_that_was_changed_by_hand_is_like_no_other() {
    let base = record();
    let mut new = record();
    new.run = "run-2".to_owned();
    new.environment.by_hand = vec!["users at 80/s from its page".to_owned()];
    let sentence = "run-2 was changed by hand: users at 80/s from its page";
    for (a, b) in [(&base, &new), (&new, &base), (&new, &new)] {
        let found = differences(a, b);
        assert_eq!(found[0].sentence, sentence);
        assert_eq!(found[0].weight, Weight::Forbids);
    }
    let line = write_record(&new).unwrap();
    assert_eq!(read_records(&line).unwrap(), [new]);
}

#[test]
fn metrics_of_records_are_those_of_any() {
    let (one, mut other) = (record(), record());
    other.metrics[0].metric.unit = Unit::Bytes;
    other.metrics.push(metric("rate", Unit::PerSecond, 3.0));
    let found = metrics_of([&one, &other]);
    let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.unit)).collect();
    assert_eq!(found, [("p99", Unit::Seconds), ("rate", Unit::PerSecond)]);
    assert!(metrics_of([]).is_empty());
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in any::<f64>(), name in ".{0,20}", commit in ".{0,20}") {
        let mut record = record();
        record.commit = commit;
        record.metrics.push(metric(&format!("{name} "), Unit::Bytes, value));
        match write_record(&record) {
            Ok(line) => {
                prop_assert_eq!(line.lines().count(), 1);
                prop_assert_eq!(read_records(&line).unwrap(), [record]);
            }
            Err(_) => {
                let unnamed = |name: &str| name.trim().is_empty() || name.contains(char::is_control);
                let unnamed = unnamed(&record.commit) || unnamed(&name);
                prop_assert!(!value.is_finite() || unnamed);
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[{}\\[\\]\",:a-z0-9\n]{0,60}") {
        let _ = read_records(&text);
    }
}
