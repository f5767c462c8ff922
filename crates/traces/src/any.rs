//! Spans in whichever form they are.

use std::borrow::Cow;
use std::io::Read;
use std::ops::RangeInclusive;

use flate2::read::MultiGzDecoder;
use units::counted;

use super::names::Names;
use super::{Nanos, Origin, ReadError, Span, jaeger, normalise, otlp, parts, zipkin};

/// The first bytes of what gzip packed.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Likewise, of zstd.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Which some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Most bytes that packed spans have unpacked.
const UNPACKED_BYTES: u64 = 1 << 30;

/// No span takes so long: a month.
const TOO_LONG: Nanos = 30 * 86_400 * 1_000_000_000;

/// Seconds after 1970 in which requests are traced, from 2001 to 2100.
const CENTURY: RangeInclusive<u64> = 978_307_200..=4_102_444_800;

/// Nor will anybody soon, 280 years after: such times are nanoseconds that were written as more.
const FARTHEST: Nanos = u64::MAX / 2;

/// Spans, and what was left out of them.
#[derive(Debug, Default)]
pub struct Decoded {
    /// As their writer means them.
    pub spans: Vec<Span>,
    /// Spans that do not say when they began.
    pub timeless: u64,
    /// Spans that end before they begin, or take a month or longer.
    pub absurd: u64,
    /// Spans whose times are of this century only in other units than those of their format.
    pub misdated: u64,
    /// Spans whose ids are none.
    pub unnamed: u64,
    /// Why the first of those is left out.
    pub first_unnamed: Option<ReadError>,
    /// The last of several bodies ends in its midst: it is left out.
    pub is_cut: bool,
}

impl Decoded {
    /// What was left out, in plain words; `None`: nothing.
    pub fn left_out(&self) -> Option<String> {
        let count = |count: u64, what: &str| {
            (count > 0).then(|| format!("{} {what}", counted(count, "span", "spans")))
        };
        let all = [
            self.is_cut
                .then(|| "the last line, which ends in its midst".to_owned()),
            count(self.timeless, "without a time of beginning"),
            count(
                self.absurd,
                "with an end before the beginning, or after a month or longer",
            ),
            count(
                self.misdated,
                "with times that are not in the units of the format: as they stand they are of 1970, or far from now",
            ),
            count(self.unnamed, "with ids that are none").map(|what| match &self.first_unnamed {
                Some(first) => format!("{what} ({first})"),
                None => what,
            }),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Spans that were left out.
    pub fn refused(&self) -> u64 {
        self.timeless + self.absurd + self.misdated + self.unnamed
    }

    /// Spans that were taken in, with those whose ids are none.
    pub(crate) fn taken(&self) -> usize {
        self.spans.len() + usize::try_from(self.unnamed).unwrap_or(usize::MAX)
    }

    /// Takes in a span as it was read.
    pub(crate) fn take(&mut self, read: Result<Span, ReadError>) {
        match read {
            Ok(span) => self.spans.push(span),
            Err(error) => {
                self.unnamed += 1;
                self.first_unnamed.get_or_insert(error);
            }
        }
    }

    /// All spans.
    ///
    /// # Errors
    /// When the ids of one are none.
    pub(crate) fn whole(self) -> Result<Vec<Span>, ReadError> {
        match self.first_unnamed {
            Some(error) => Err(error),
            None => Ok(self.spans),
        }
    }

    /// Leaves out spans that have no place in time.
    fn sensible(mut self, origin: &Origin) -> Self {
        let Self {
            spans,
            timeless,
            absurd,
            misdated,
            ..
        } = &mut self;
        spans.retain(|span| {
            let begun = origin.epoch.to_unix(span.start);
            let (is_ordered, length) = (span.end >= span.start, span.length());
            let why = match begun {
                0 => &mut *timeless,
                begun if is_in_other_units(begun) => &mut *misdated,
                _ if !is_ordered || length >= TOO_LONG => &mut *absurd,
                _ => return true,
            };
            *why += 1;
            false
        });
        self
    }
}

/// Whether a time since 1970, taken as nanoseconds, is more likely microseconds, milliseconds, or
/// nanoseconds that were taken as more. Clocks that began at 1970 with their machine are seldom so.
fn is_in_other_units(begun: Nanos) -> bool {
    let mut seconds = [begun / 1_000_000, begun / 1_000].into_iter();
    begun > FARTHEST || seconds.any(|seconds| CENTURY.contains(&seconds))
}

/// What a posted body is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Zipkin's JSON, version 2.
    Zipkin,
    /// OTLP in JSON.
    OtlpJson,
    /// OTLP in protobuf.
    OtlpProtobuf,
}

/// Reads a posted body of which the form is known, as [`decode`] reads a file.
///
/// # Errors
/// When it is no such body, or has more parts than are read at once.
pub fn decode_posted(
    form: Form,
    body: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let decoded = match form {
        Form::Zipkin => parts::check_json(body).and_then(|()| zipkin::decode(body, origin, names)),
        Form::OtlpJson => {
            parts::check_json(body).and_then(|()| otlp::decode_json(body, origin, names))
        }
        Form::OtlpProtobuf => {
            parts::check_protobuf(body).and_then(|()| otlp::decode_protobuf(body, origin, names))
        }
    };
    Ok(decoded?.sensible(origin))
}

/// Reads the spans of whole traces, and [normalises](normalise) them; see [`decode`].
///
/// # Errors
/// As of [`decode`], and when the ids of a span are none.
pub fn read(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut spans = decode(bytes, origin)?.whole()?;
    normalise(&mut spans);
    Ok(spans)
}

/// Reads spans as their writer means them, for those who have the rest of their traces to
/// [normalise] them with: Zipkin's JSON is a list, OTLP's and Jaeger's are objects with keys of
/// their own (of OTLP, several may follow each other, as the collector's file exporter writes
/// them, and the last may be cut off; the answers of Tempo are OTLP too); what is no JSON is OTLP
/// in protobuf, of which several may follow each other, each behind its length. Any may be packed by
/// gzip, up to 1 GiB unpacked.
///
/// Spans that cannot be used are left out and counted.
///
/// # Errors
/// When it is none of these.
pub fn decode(bytes: &[u8], origin: &Origin) -> Result<Decoded, ReadError> {
    let bytes = unpacked(bytes)?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let mut names = Names::default();
    // A body in protobuf begins with a line feed, and the length behind it may be a bracket.
    if bytes.starts_with(b"\n")
        && let Ok(decoded) = otlp::decode_protobuf(bytes, origin, &mut names)
    {
        return Ok(decoded.sensible(origin));
    }
    let decoded = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => zipkin::decode(bytes, origin, &mut names)?,
        Some(b'{') if first_key(bytes).is_some_and(|key| jaeger::KEYS.contains(&key)) => {
            jaeger::decode(bytes, origin, &mut names)?
        }
        Some(b'{') if first_key(bytes).is_some_and(|key| otlp::KEYS.contains(&key)) => {
            otlp::decode_json_lines(bytes, origin, &mut names)?
        }
        Some(b'{') => {
            return Err(ReadError::Form {
                format: "OTLP or Jaeger",
                cause: format!(
                    "its first key is {:?}; expected one of {:?} of OTLP, or of {:?} of Jaeger",
                    first_key(bytes).unwrap_or_default(),
                    otlp::KEYS,
                    jaeger::KEYS
                ),
            });
        }
        _ => otlp::decode_protobuf_bodies(bytes, origin, &mut names)?,
    };
    Ok(decoded.sensible(origin))
}

fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    // The collector's file exporter has a length before each body that it packs.
    let begins = |rest: &[u8]| rest.starts_with(ZSTD);
    if begins(bytes) || bytes.get(4..).is_some_and(begins) {
        return Err(ReadError::Form {
            format: "gzip or plain",
            cause: "it is packed by zstd; expected it unpacked, or packed by gzip".to_owned(),
        });
    }
    if !bytes.starts_with(GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut plain = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(UNPACKED_BYTES + 1);
    reader
        .read_to_end(&mut plain)
        .map_err(ReadError::form("gzip"))?;
    match plain.len() as u64 > UNPACKED_BYTES {
        false => Ok(Cow::Owned(plain)),
        true => Err(ReadError::Form {
            format: "gzip",
            cause: format!(
                "it has more than {} unpacked",
                units::write_bytes(UNPACKED_BYTES)
            ),
        }),
    }
}

/// The first key of a JSON object.
fn first_key(json: &[u8]) -> Option<&str> {
    let key = json.trim_ascii_start().strip_prefix(b"{")?;
    let key = key.trim_ascii_start().strip_prefix(b"\"")?;
    let end = key.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(key.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        let origin = Origin::unix();
        assert!(read(b" []", &origin).unwrap().is_empty());
        let otlp = br#"{"resourceSpans":[]}"#;
        assert!(read(otlp, &origin).unwrap().is_empty());
        let span = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0000000000000000000000000000000a","spanId":"000000000000000b","name":"/","startTimeUnixNano":"20","endTimeUnixNano":"30"}]}]}]}"#;
        let lines = format!("{span}\n{}\n", span.replace("000b", "000c"));
        assert_eq!(read(lines.as_bytes(), &origin).unwrap().len(), 2);
        let broken = format!("{span}\n{{\"resource\" 3}}\n{span}");
        let error = read(broken.as_bytes(), &origin).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = read(b" {\n \"data\" : 3}", &origin)
            .unwrap_err()
            .to_string();
        assert!(error.contains("Jaeger"), "{error}");
        let error = read(b"{\"level\":3}", &origin).unwrap_err().to_string();
        assert!(error.contains("its first key is \"level\""), "{error}");
        let error = read(b"\x01\xff", &origin).unwrap_err().to_string();
        assert!(error.contains("protobuf"), "{error}");
    }

    const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0000000000000000000000000000000a","spanId":"000000000000000b","name":"/","startTimeUnixNano":"20","endTimeUnixNano":"30","attributes":null}]}]}]}"#;

    fn decoded(bytes: &[u8]) -> Decoded {
        decode(bytes, &Origin::unix()).unwrap()
    }

    #[test]
    fn a_last_line_that_is_cut_is_left_out_and_said() {
        let cut = decoded(format!("{SPAN}\n{}", &SPAN[..90]).as_bytes());
        assert_eq!(cut.spans.len(), 1);
        assert_eq!(
            cut.left_out().as_deref(),
            Some("the last line, which ends in its midst")
        );
        assert_eq!(decoded(SPAN.as_bytes()).left_out(), None);
        let only = decode(&SPAN.as_bytes()[..90], &Origin::unix()).unwrap_err();
        assert!(only.to_string().contains("EOF"), "{only}");
    }

    /// A span in protobuf: its one resource takes 52 bytes and those of the span's name.
    fn protobuf(name: usize) -> Vec<u8> {
        let field = |tag: u8, of: &[u8]| [&[tag, of.len() as u8][..], of].concat();
        let time = |tag: u8| [&[tag][..], &1_790_000_000_000_000_000_u64.to_le_bytes()].concat();
        let span = [
            field(0x0a, &[7; 16]),
            field(0x12, &[7; 8]),
            field(0x2a, &vec![b'n'; name]),
            time(0x39),
            time(0x41),
        ];
        let scope = field(0x12, &span.concat());
        field(0x0a, &field(0x12, &scope))
    }

    #[test]
    fn protobuf_that_looks_like_json_is_protobuf() {
        for (name, bracket) in [(71, b'{'), (39, b'['), (40, b'\\')] {
            let body = protobuf(name);
            assert_eq!(body[..2], [b'\n', bracket]);
            let decoded = decoded(&body);
            assert_eq!(decoded.spans.len(), 1);
            assert_eq!(decoded.spans[0].name.len(), name);
        }
        assert_eq!(decoded(format!("\n{SPAN}").as_bytes()).spans.len(), 1);
        assert!(decoded(b"\n[]").spans.is_empty());
    }

    #[test]
    fn bodies_in_protobuf_may_have_their_lengths_before_them() {
        let framed = |name: usize| {
            let body = protobuf(name);
            [&(body.len() as u32).to_be_bytes()[..], &body].concat()
        };
        let mut file = [framed(3), framed(4)].concat();
        let whole = decoded(&file);
        assert_eq!((whole.spans.len(), whole.is_cut), (2, false));
        file.truncate(file.len() - 1);
        let cut = decoded(&file);
        assert_eq!((cut.spans.len(), cut.is_cut), (1, true));
        let only = decode(&framed(3)[..20], &Origin::unix()).unwrap_err();
        assert!(only.to_string().contains("protobuf"), "{only}");
    }

    #[test]
    fn what_zstd_packed_is_told() {
        for before in [&[][..], &[0, 0, 1, 7][..]] {
            let packed = [before, ZSTD, &[0; 9]].concat();
            let error = decode(&packed, &Origin::unix()).unwrap_err().to_string();
            assert!(error.contains("packed by zstd"), "{error}");
        }
    }

    #[test]
    fn spans_without_a_sensible_time_are_counted() {
        for end in ["19", "18446744073709551615"] {
            let absurd = decoded(SPAN.replace("\"30\"", &format!("\"{end}\"")).as_bytes());
            assert_eq!((absurd.spans.len(), absurd.absurd), (0, 1));
        }
        let zipkin = br#"[{"traceId":"000000000000000a","id":"000000000000000b"},
            {"traceId":"000000000000000a","id":"000000000000000c","timestamp":5}]"#;
        let timeless = decoded(zipkin);
        assert_eq!((timeless.spans.len(), timeless.timeless), (1, 1));
        assert_eq!(
            timeless.left_out().as_deref(),
            Some("1 span without a time of beginning")
        );
    }

    #[test]
    fn times_in_other_units_are_left_out_and_said() {
        let at = |start: u64, end: u64| {
            let text = SPAN.replace("\"20\"", &format!("\"{start}\""));
            decoded(text.replace("\"30\"", &format!("\"{end}\"")).as_bytes())
        };
        let now: u64 = 1_790_000_000_000_000_000;
        let good = at(now, now + 5);
        assert_eq!((good.spans.len(), good.left_out()), (1, None));
        for units in [1_000, 1_000_000] {
            let other = at(now / units, now / units + 5);
            assert_eq!((other.spans.len(), other.misdated), (0, 1), "{units}");
            let said = other.left_out().unwrap();
            assert!(
                said.starts_with("1 span with times that are not in the units"),
                "{said}"
            );
        }
        // A machine whose clock began with it, an hour and a half ago.
        let young = at(5_400_000_000_000, 5_400_000_000_005);
        assert_eq!((young.spans.len(), young.left_out()), (1, None));
        let none = at(0, 0);
        assert_eq!((none.spans.len(), none.timeless), (0, 1));
        let zipkin = |timestamp: u64| {
            let text = format!(
                r#"[{{"traceId":"000000000000000a","id":"000000000000000c","timestamp":{timestamp},"duration":5}}]"#
            );
            decoded(text.as_bytes())
        };
        assert_eq!(zipkin(now / 1_000).spans.len(), 1);
        assert_eq!(zipkin(now).misdated, 1, "nanoseconds");
        assert_eq!(zipkin(now / 1_000_000).misdated, 1, "milliseconds");
    }

    #[test]
    fn one_bad_span_costs_no_good_one() {
        let bad = SPAN.replace("0000000000000000000000000000000a", &"0".repeat(32));
        let both = decoded(format!("{SPAN}\n{bad}").as_bytes());
        assert_eq!((both.spans.len(), both.unnamed, both.refused()), (1, 1, 1));
        let said = both.left_out().unwrap();
        assert!(
            said.contains("1 span with ids that are none (read spans: traceId of span 2"),
            "{said}"
        );
        let trace = "\"0000000000000000000000000000000a\"";
        // Other letters, too few digits, too many, numbers.
        let long = format!("\"{}\"", "a".repeat(40));
        for id in ["\"xyz\"", "\"0a1\"", long.as_str(), "12", "-1", "1.5"] {
            let bad = SPAN.replace(trace, id);
            let both = decoded(format!("{SPAN}\n{bad}\n{bad}\n{SPAN}").as_bytes());
            assert_eq!((both.spans.len(), both.unnamed), (2, 2), "{id}");
            let said = both.left_out().unwrap();
            assert!(said.contains("2 spans with ids that are none"), "{said}");
            assert!(said.contains("traceId of span 2"), "{said}");
        }
        let parent = SPAN.replace("\"name\"", "\"parentSpanId\":\"parent!\",\"name\"");
        assert_eq!(decoded(parent.as_bytes()).unnamed, 1);
        let zipkin =
            br#"[{"traceId":"0","id":"b","timestamp":5},{"traceId":"a","id":"c","timestamp":5}]"#;
        let zipkin = decoded(zipkin);
        assert_eq!((zipkin.spans.len(), zipkin.unnamed), (1, 1));
        let jaeger = br#"{"data":[{"spans":[
            {"traceID":"0","spanID":"1","startTime":5},{"traceID":"a","spanID":"1","startTime":5}]}]}"#;
        let jaeger = decoded(jaeger);
        assert_eq!((jaeger.spans.len(), jaeger.unnamed), (1, 1));
    }

    #[test]
    fn answers_of_tempo_and_jaeger_are_otlp_whose_ids_may_be_in_base64() {
        let coded = SPAN
            .replace(
                "0000000000000000000000000000000a",
                "AAAAAAAAAAAAAAAAAAAACg==",
            )
            .replace("000000000000000b", "AAAAAAAAAAs=");
        let expected = decoded(SPAN.as_bytes()).spans;
        assert_eq!(expected.len(), 1);
        for text in [
            coded.replace("resourceSpans", "batches"),
            format!(r#"{{"trace":{coded},"metrics":{{}}}}"#),
            format!(r#"{{"result":{SPAN}}}"#),
            SPAN.replace("scopeSpans", "instrumentationLibrarySpans"),
        ] {
            assert_eq!(decoded(text.as_bytes()).spans, expected, "{text}");
        }
        assert!(decoded(br#"{"trace":{}}"#).spans.is_empty());
    }

    #[test]
    fn packed_files_and_marks_of_editors_are_read() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(SPAN.as_bytes()).unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(decoded(&packed).spans.len(), 1);
        let broken = decode(&packed[..packed.len() / 2], &Origin::unix()).unwrap_err();
        assert!(broken.to_string().contains("gzip"), "{broken}");
        assert_eq!(decoded(format!("\u{feff}{SPAN}").as_bytes()).spans.len(), 1);
    }

    #[test]
    fn what_jaeger_refused_is_told_in_its_words() {
        let refused = br#"{"data":null,"total":0,"errors":[{"code":404,"msg":"trace not found"}]}"#;
        let error = decode(refused, &Origin::unix()).unwrap_err().to_string();
        assert!(error.contains("trace not found"), "{error}");
        assert!(decoded(br#"{"data":null,"errors":null}"#).spans.is_empty());
    }
}
