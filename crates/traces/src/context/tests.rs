use proptest::prelude::*;

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn of(fields: &[(&str, &str)]) -> (Context, String) {
    let mut passed = b"left over".to_vec();
    let fields = fields
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let context = read(fields, &mut passed);
    (context, String::from_utf8(passed).unwrap())
}

fn context(sampled: Option<bool>, debug: bool) -> Context {
    Context {
        trace: TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736),
        parent: SpanId(0x00f0_67aa_0ba9_02b7),
        sampled,
        debug,
    }
}

#[test]
fn traceparent_is_read_with_its_state() {
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let (read, passed) = of(&[
        ("TraceState", "a=1"),
        ("Traceparent", &parent),
        ("tracestate", "b=2"),
    ]);
    assert_eq!(read, context(Some(true), false));
    assert_eq!(passed, "tracestate: a=1\r\ntracestate: b=2\r\n");
    let parent = format!("00-{TRACE}-{SPAN}-fe");
    assert_eq!(
        of(&[("traceparent", &parent)]).0,
        context(Some(false), false)
    );
    // A version to come, with more behind.
    let parent = format!("cc-{TRACE}-{SPAN}-01-what");
    assert_eq!(
        of(&[("traceparent", &parent)]).0,
        context(Some(true), false)
    );
}

#[test]
fn a_malformed_traceparent_is_none_and_its_state_goes() {
    let zero = "0".repeat(32);
    for bad in [
        String::new(),
        format!("00-{TRACE}-{SPAN}-0"),
        format!("00-{TRACE}-{SPAN}-01-more"),
        format!("00-{TRACE}-{SPAN}-01x"),
        format!("cc-{TRACE}-{SPAN}-01x"),
        format!("ff-{TRACE}-{SPAN}-01"),
        format!("00-{zero}-{SPAN}-01"),
        format!("00-{TRACE}-0000000000000000-01"),
        format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
        format!("00_{TRACE}-{SPAN}-01"),
        format!("00-{TRACE}{SPAN}--01"),
        format!("0g-{TRACE}-{SPAN}-01"),
    ] {
        let (read, passed) = of(&[("traceparent", &bad), ("tracestate", "a=1")]);
        assert_eq!((read, passed.as_str()), (Context::default(), ""), "{bad}");
    }
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let twice = of(&[("traceparent", &parent), ("traceparent", &parent)]);
    assert_eq!(twice.0, Context::default());
}

#[test]
fn b3_is_read_in_one_field() {
    for (rest, sampled, debug) in [
        ("", None, false),
        ("-1", Some(true), false),
        ("-0", Some(false), false),
        ("-d", Some(true), true),
        ("-1-05e3ac9a4f6e3b90", Some(true), false),
    ] {
        let (read, _) = of(&[("b3", &format!("{TRACE}-{SPAN}{rest}"))]);
        assert_eq!(read, context(sampled, debug), "{rest}");
    }
    let short = of(&[("b3", &format!("a3ce929d0e0e4736-{SPAN}-1"))]).0;
    assert_eq!(short.trace, TraceId(0xa3ce_929d_0e0e_4736));
    let denied = of(&[("b3", "0")]).0;
    assert_eq!((denied.trace, denied.sampled), (TraceId(0), Some(false)));
    for bad in [
        "",
        "x",
        "1-1",
        &format!("{TRACE}-{SPAN}-1-05e3"),
        &format!("{TRACE}-{SPAN}-2"),
    ] {
        assert_eq!(of(&[("b3", bad)]).0, Context::default(), "{bad}");
    }
}

#[test]
fn b3_is_read_in_several_fields() {
    let ids = [("X-B3-TraceId", TRACE), ("X-B3-SpanId", SPAN)];
    let with = |more: &[(&'static str, &'static str)]| of(&[&ids[..], more].concat()).0;
    assert_eq!(with(&[]), context(None, false));
    assert_eq!(with(&[("X-B3-Sampled", "1")]), context(Some(true), false));
    assert_eq!(
        with(&[("X-B3-Sampled", "false")]),
        context(Some(false), false)
    );
    assert_eq!(with(&[("X-B3-Flags", "1")]), context(Some(true), true));
    assert_eq!(with(&[("X-B3-Sampled", "maybe")]), context(None, false));
    // The decision alone holds.
    let (alone, _) = of(&[("x-b3-sampled", "0")]);
    assert_eq!((alone.trace, alone.sampled), (TraceId(0), Some(false)));
    let (half, _) = of(&[("x-b3-traceid", TRACE), ("x-b3-sampled", "1")]);
    assert_eq!((half.trace, half.sampled), (TraceId(0), Some(true)));
}

#[test]
fn one_form_counts_before_the_other() {
    let parent = format!("00-{}-{SPAN}-00", "1".repeat(32));
    let b3 = format!("{}-{SPAN}-1", "2".repeat(32));
    let multi = [("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN)];
    let all = [&[("traceparent", parent.as_str()), ("b3", &b3)][..], &multi].concat();
    let trace = |fields: &[(&str, &str)]| format!("{:x}", of(fields).0.trace.0);
    assert_eq!(trace(&all), "1".repeat(32));
    assert_eq!(trace(&all[1..]), "2".repeat(32));
    assert_eq!(trace(&all[2..]), TRACE);
}

#[test]
fn fields_of_other_systems_are_passed_on_within_bounds() {
    let (_, passed) = of(&[
        ("X-Request-Id", "r 1"),
        ("Accept", "x"),
        ("x-datadog-sampling-priority", "2"),
        ("baggage", "k=v"),
    ]);
    let expected = "x-request-id: r 1\r\nx-datadog-sampling-priority: 2\r\nbaggage: k=v\r\n";
    assert_eq!(passed, expected);
    let long = "x".repeat(PASSED_BYTES);
    let (_, passed) = of(&[
        ("baggage", &long),
        ("x-request-id", "a\r\nb: c"),
        ("baggage", "s"),
    ]);
    assert_eq!(passed, "baggage: s\r\n");
}

fn lines(out: &[u8]) -> Vec<(&[u8], &[u8])> {
    wire::http1::fields(out).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        trace in 1_u128.., short in any::<bool>(), span in 1_u64.., parent: u64,
        sampled: bool, debug: bool, w3c: bool,
    ) {
        let trace = TraceId(if short { trace & 0xffff | 1 } else { trace });
        let outgoing = Outgoing {
            trace, span: SpanId(span), parent: SpanId(parent), sampled, debug,
            passed: b"x-request-id: 7\r\n",
        };
        let forms = Forms { w3c, b3: !w3c };
        let (mut out, mut passed) = (Vec::new(), Vec::new());
        write(forms, &outgoing, &mut out);
        let context = read(lines(&out).into_iter(), &mut passed);
        prop_assert_eq!(passed, outgoing.passed);
        let expected = Context {
            trace,
            parent: SpanId(span),
            sampled: Some(sampled || debug && !w3c),
            debug: debug && !w3c,
        };
        prop_assert_eq!(context, expected);
    }

    #[test]
    fn any_fields_are_read_or_not(
        fields in proptest::collection::vec(
            ("(b3|traceparent|x-b3-(traceid|spanid|sampled|flags)|tracestate|.{0,20})",
             "([0-9a-f]{16}|[0-9a-f]{32}|-|[01d]){0,7}|.{0,80}"),
            0..6,
        ),
    ) {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut passed = Vec::new();
        let context = read(fields, &mut passed);
        prop_assert_eq!(context.trace.0 == 0, context.parent.0 == 0);
        prop_assert!(passed.len() <= PASSED_BYTES);
    }
}
