//! Reading the field lines that a [`Sink`](super::Sink) is given.

/// Name and value of each field in lines that a scanner has accepted. Values are free of
/// space around them. Lines that are not fields are skipped.
pub fn fields(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    lines.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The value of the first field with a name, compared without regard to case.
pub fn field<'a>(lines: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(lines)
        .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}
