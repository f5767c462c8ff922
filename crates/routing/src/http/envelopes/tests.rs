use proptest::prelude::*;

use super::dropsonde::{self, method_name};
use super::loggregator::{Event, Log, Timer, converted};
use super::*;

fn event() -> HttpStartStop {
    HttpStartStop {
        start_timestamp: 7,
        stop_timestamp: 9,
        request_id: Uuid::parse(b"5a7b3f9e-7c13-4d26-8f8e-0123456789ab").unwrap(),
        peer_type: dropsonde::CLIENT,
        method: 2,
        uri: "http://app.test/a".to_owned(),
        remote_address: "203.0.113.9:4711".to_owned(),
        user_agent: "curl".to_owned(),
        status_code: 503,
        content_length: -1,
        application_id: Uuid::parse(b"c4f1d0b1-1d5a-4a73-9b1d-aa00bb11cc22"),
        instance_index: Some(3),
        instance_id: Some("instance".to_owned()),
        forwarded: vec!["203.0.113.9".to_owned(), "10.0.0.7".to_owned()],
    }
}

fn envelope(tags: &[(&str, &str)]) -> Envelope {
    let tags = tags.iter().map(|(name, value)| (*name, *value));
    Envelope {
        origin: ORIGIN.to_owned(),
        timestamp: Some(11),
        tags: tags
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Envelope::default()
    }
}

fn pairs(tags: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    tags.iter()
        .map(|(name, value)| (&**name, &**value))
        .collect()
}

/// The halves are those of Go's `binary.LittleEndian.Uint64`, which gorouter takes.
#[test]
fn a_uuid_is_two_little_endian_numbers() {
    let text = "5a7b3f9e-7c13-4d26-8f8e-0123456789ab";
    let uuid = Uuid::parse(text.as_bytes()).unwrap();
    assert_eq!(uuid.low, 0x264d_137c_9e3f_7b5a);
    assert_eq!(uuid.high, 0xab89_6745_2301_8e8f);
    assert_eq!(uuid.text(), text);
    assert_eq!(Uuid::parse(b"app-guid"), None);
}

/// Numbers of `http.proto`.
#[test]
fn methods_have_the_numbers_of_the_protocol() {
    for (name, number) in [
        ("GET", 1),
        ("HEAD", 5),
        ("CONNECT", 11),
        ("OPTIONS", 24),
        ("PATCH", 26),
        ("TRACE", 36),
        ("VERSION_CONTROL", 44),
    ] {
        assert_eq!(method_number(name.as_bytes()), number);
        assert_eq!(method_name(number), name);
    }
    assert_eq!((method_number(b"get"), &*method_name(0)), (0, "0"));
}

/// As the platform's forwarder of datagrams converts them.
#[test]
fn a_request_becomes_a_timer_of_its_application() {
    let old = Envelope {
        event_type: dropsonde::HTTP_START_STOP,
        http_start_stop: Some(event()),
        ..envelope(&[("source_id", "other"), ("process_type", "web")])
    };
    let new = converted(old).unwrap();
    assert_eq!(
        (new.timestamp, &*new.source_id, &*new.instance_id),
        (11, "c4f1d0b1-1d5a-4a73-9b1d-aa00bb11cc22", "3")
    );
    let timer = Timer {
        name: "http".to_owned(),
        start: 7,
        stop: 9,
    };
    assert_eq!(new.message, Some(Event::Timer(timer)));
    assert_eq!(
        pairs(&new.tags),
        [
            ("__v1_type", "HttpStartStop"),
            ("content_length", "-1"),
            ("forwarded", "203.0.113.9\n10.0.0.7"),
            ("method", "POST"),
            ("origin", "gorouter"),
            ("peer_type", "Client"),
            ("process_type", "web"),
            ("remote_address", "203.0.113.9:4711"),
            ("request_id", "5a7b3f9e-7c13-4d26-8f8e-0123456789ab"),
            ("routing_instance_id", "instance"),
            ("status_code", "503"),
            ("uri", "http://app.test/a"),
            ("user_agent", "curl"),
        ]
    );
}

#[test]
fn a_request_of_nobody_is_told_by_its_source_or_of_the_router() {
    let of = |tags: &[(&str, &str)]| {
        let event = HttpStartStop {
            application_id: None,
            ..event()
        };
        let old = Envelope {
            http_start_stop: Some(event),
            ..envelope(tags)
        };
        converted(old).unwrap().source_id
    };
    assert_eq!(of(&[("source_id", "app")]), "app");
    assert_eq!(of(&[]), "gorouter");
    assert_eq!(converted(envelope(&[])), None);
}

#[test]
fn a_line_becomes_a_log_of_its_application() {
    let log = LogMessage {
        message: b"app.test - [x]".to_vec(),
        message_type: dropsonde::OUT,
        timestamp: 5,
        app_id: Some("app".to_owned()),
        source_type: Some("RTR".to_owned()),
        source_instance: Some("2".to_owned()),
    };
    let old = Envelope {
        event_type: dropsonde::LOG_MESSAGE,
        log_message: Some(log),
        ..envelope(&[("source_id", "other")])
    };
    let new = converted(old).unwrap();
    assert_eq!((&*new.source_id, &*new.instance_id), ("app", "2"));
    let log = Log {
        payload: b"app.test - [x]".to_vec(),
        kind: 0,
    };
    assert_eq!(new.message, Some(Event::Log(log)));
    assert_eq!(
        pairs(&new.tags),
        [
            ("__v1_type", "LogMessage"),
            ("origin", "gorouter"),
            ("source_type", "RTR"),
        ]
    );
}

#[test]
fn addresses_are_told_apart() {
    assert_eq!(forwarded(b""), Vec::<String>::new());
    assert_eq!(forwarded(b"10.0.0.7, ::1 ,x"), ["10.0.0.7", "::1", "x"]);
}

proptest! {
    /// What is written is what is read, and a UUID stays one.
    #[test]
    fn envelopes_survive_the_wire(
        low: u64,
        high: u64,
        uri in ".*",
        code: i32,
        index in proptest::option::of(any::<i32>()),
    ) {
        let uuid = Uuid { low, high };
        prop_assert_eq!(Uuid::parse(uuid.text().as_bytes()), Some(uuid));
        let event = HttpStartStop {
            request_id: uuid,
            uri,
            status_code: code,
            instance_index: index,
            ..event()
        };
        let envelope = Envelope { http_start_stop: Some(event), ..envelope(&[("a", "b")]) };
        let bytes = envelope.encode_to_vec();
        prop_assert_eq!(Envelope::decode(&*bytes), Ok(envelope));
    }
}
