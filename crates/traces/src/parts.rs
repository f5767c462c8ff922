//! How many parts a posted body has, counted before room is made for them: a span of two bytes takes
//! a hundred times that once it is read.

use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::ReadError;

/// Most resources, scopes, spans and attributes of a body in protobuf: one for every 16 bytes of the
/// longest body, where the shortest attribute that says something has 12.
const MESSAGES: usize = 2 << 20;

/// Most objects, lists and values in them of a body in JSON, where an attribute has four in 45 bytes.
const VALUES: usize = 4 << 20;

/// Looks whether a body in protobuf has no more parts than are read at once.
///
/// # Errors
/// When it has more.
pub(crate) fn check_protobuf(body: &[u8]) -> Result<(), ReadError> {
    let mut left = MESSAGES;
    within(body, Part::Traces, &mut left).ok_or(ReadError::Parts { most: MESSAGES })
}

/// Likewise, in JSON.
///
/// # Errors
/// When it has more.
pub(crate) fn check_json(body: &[u8]) -> Result<(), ReadError> {
    match values(body) <= VALUES {
        true => Ok(()),
        false => Err(ReadError::Parts { most: VALUES }),
    }
}

/// A message of OTLP (`trace.proto`) of which many may be in another.
#[derive(Clone, Copy)]
enum Part {
    Traces,
    ResourceSpans,
    Resource,
    ScopeSpans,
    Span,
    Attribute,
}

impl Part {
    /// What a field holds; `None`: nothing that takes room of its own.
    fn of_field(self, field: u32) -> Option<Self> {
        match (self, field) {
            (Self::Traces, 1) => Some(Self::ResourceSpans),
            (Self::ResourceSpans, 1) => Some(Self::Resource),
            (Self::ResourceSpans, 2) => Some(Self::ScopeSpans),
            (Self::ScopeSpans, 2) => Some(Self::Span),
            (Self::Resource, 1) | (Self::Span, 9) => Some(Self::Attribute),
            _ => None,
        }
    }
}

/// Takes the parts of a message off what is left; `None`: there are more. Counting ends where bytes
/// are no message, for so does reading.
fn within(mut bytes: &[u8], part: Part, left: &mut usize) -> Option<()> {
    while bytes.has_remaining() {
        let Ok((field, wire_type)) = decode_key(&mut bytes) else {
            return Some(());
        };
        let inner = match wire_type {
            WireType::LengthDelimited => part.of_field(field),
            _ => None,
        };
        let Some(inner) = inner else {
            if skip_field(wire_type, field, &mut bytes, DecodeContext::default()).is_err() {
                return Some(());
            }
            continue;
        };
        *left = left.checked_sub(1)?;
        let Ok(length) = decode_varint(&mut bytes) else {
            return Some(());
        };
        // Of one that is cut off, what there is of it is read before that is noticed.
        let length = usize::try_from(length).map_or(bytes.len(), |length| length.min(bytes.len()));
        let (message, rest) = bytes.split_at(length);
        within(message, inner, left)?;
        bytes = rest;
    }
    Some(())
}

/// Objects, lists, and values in them but for the first of each.
fn values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' | b',' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::names::Names;
    use crate::{Form, Origin, decode_posted};

    /// A field that holds bytes, and what comes after it.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut written = vec![number << 3 | 2];
        prost::encoding::encode_varint(bytes.len() as u64, &mut written);
        [&written, bytes].concat()
    }

    /// So many spans that say nothing, in a body.
    fn empty_spans(count: usize) -> Vec<u8> {
        field(1, &field(2, &field(2, &[]).repeat(count)))
    }

    fn parts(body: &[u8]) -> usize {
        let mut left = MESSAGES;
        within(body, Part::Traces, &mut left).unwrap();
        MESSAGES - left
    }

    fn posted(form: Form, body: &[u8]) -> Result<u64, ReadError> {
        let decoded = decode_posted(form, body, &Origin::unix(), &mut Names::default())?;
        Ok(decoded.refused())
    }

    proptest! {
        #[test]
        fn parts_are_counted_wherever_they_are(
            // Of each resource its attributes, and the attributes of each of its spans.
            resources in vec((0_usize..4, vec(0_usize..4, 0..5)), 0..4),
        ) {
            let attribute = field(1, b"a key, which has {1} part");
            let (mut body, mut planted) = (Vec::new(), 0);
            for (attributes, spans) in &resources {
                let of_span = |count: &usize| {
                    let name = field(5, b"its name");
                    field(2, &[name, field(9, &attribute).repeat(*count)].concat())
                };
                let scope = spans.iter().flat_map(of_span).collect::<Vec<u8>>();
                let resource = field(1, &field(1, &attribute).repeat(*attributes));
                body.extend(field(1, &[field(2, &scope), resource].concat()));
                planted += 3 + attributes + spans.len() + spans.iter().sum::<usize>();
            }
            prop_assert_eq!(parts(&body), planted);
            for cut in 0..body.len() {
                prop_assert!(parts(&body[..cut]) <= planted);
            }
        }

        #[test]
        fn any_bytes_are_counted(bytes: Vec<u8>) {
            prop_assert!(check_protobuf(&bytes).is_ok() && check_json(&bytes).is_ok());
        }
    }

    #[test]
    fn what_takes_much_more_room_than_bytes_is_refused_before_it_is_read() {
        // A resource and a scope are parts, too.
        assert!(check_protobuf(&empty_spans(MESSAGES - 2)).is_ok());
        let refused = posted(Form::OtlpProtobuf, &empty_spans(MESSAGES - 1));
        assert!(matches!(refused, Err(ReadError::Parts { most: MESSAGES })));
        let spans = vec!["{}"; VALUES / 2 + 1].join(",");
        let resource = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
        for (form, body) in [
            (Form::OtlpJson, resource),
            (Form::Zipkin, format!("[{spans}]")),
        ] {
            let refused = posted(form, body.as_bytes());
            assert!(
                matches!(refused, Err(ReadError::Parts { most: VALUES })),
                "{form:?}"
            );
        }
        assert_eq!(
            posted(Form::OtlpProtobuf, &empty_spans(1_000)).unwrap(),
            1_000
        );
    }

    #[test]
    fn what_texts_hold_are_no_values() {
        assert_eq!(values(br#"[{"a":"{[,\",{","b":[1,2]}]"#), 5);
        assert_eq!(values(br#"{"a":"\\"},[]"#), 3);
    }
}
