//! The interval log of HdrHistogram, version 1.3, as its own tools write and read it.

use std::time::Duration;

use measure::HistogramError;

use crate::recording::Span;

/// The lines that begin a log. Times in it count from `began_unix_ns`.
pub fn hdr_head(program: &str, began_unix_ns: i64) -> String {
    let seconds = began_unix_ns as f64 / 1e9;
    format!(
        "#[Logged with {program}; values are microseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch)]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n"
    )
}

/// The lines of one span: tagged `intended`, latency from the intended send, and
/// `actual`, latency from the actual one. Values are microseconds; the column
/// `Interval_Max` is in milliseconds. Made a span after the other, as they end, so that
/// nothing need be kept.
///
/// # Errors
/// When a histogram cannot be written.
pub fn hdr_lines(span: &Span) -> Result<String, HistogramError> {
    let requests = span.requests();
    let mut lines = String::new();
    for (tag, histogram) in [
        ("intended", &requests.intended),
        ("actual", &requests.actual),
    ] {
        let max = histogram.max().unwrap_or(Duration::ZERO).as_secs_f64() * 1e3;
        lines += &format!(
            "Tag={tag},{:.3},{:.3},{max:.3},{}\n",
            span.start.as_secs_f64(),
            span.length.as_secs_f64(),
            histogram.to_base64()?
        );
    }
    Ok(lines)
}
