//! The first message of a TLS client, read without answering it.

/// Most bytes of a `ClientHello`, with its record headers, that are looked at.
pub const MOST_HELLO: usize = 16 * 1024;

/// What the first bytes of a connection say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// The `ClientHello` goes on.
    NeedMore,
    /// It asks for this name (SNI), in lower case.
    Name(String),
    /// It asks for no name.
    NoName,
    /// It is not a `ClientHello`, or one of more than [`MOST_HELLO`] bytes.
    NotTls,
}

/// Finds the name that a client asks for (RFC 6066 section 3) in the bytes that it has
/// sent so far. The message may be split over records (RFC 8446 section 5.1).
pub fn client_hello_name(bytes: &[u8]) -> Hello {
    let bounded = &bytes[..bytes.len().min(MOST_HELLO)];
    match read(bounded) {
        Err(Stop::Incomplete) if bytes.len() < MOST_HELLO => Hello::NeedMore,
        Err(_) => Hello::NotTls,
        Ok(Some(name)) => Hello::Name(name),
        Ok(None) => Hello::NoName,
    }
}

/// Whether a connection begins with a request of HTTP rather than with TLS: by its first five
/// bytes, as Go looks at them.
pub fn looks_like_http(bytes: &[u8]) -> bool {
    [&b"GET /"[..], b"HEAD ", b"POST ", b"PUT /", b"OPTIO"]
        .iter()
        .any(|begin| bytes.starts_with(begin))
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Incomplete,
    Broken,
}

fn read(bytes: &[u8]) -> Result<Option<String>, Stop> {
    let message = message(bytes)?;
    let mut hello = Part(&message);
    hello.take(2 + 32)?; // version, random
    hello.list_of_u8()?; // session
    hello.list_of_u16()?; // ciphers
    hello.list_of_u8()?; // compressions
    if hello.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = hello.list_of_u16()?;
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let mut content = extensions.list_of_u16()?;
        if kind == 0 {
            return name(content.list_of_u16()?);
        }
    }
    Ok(None)
}

/// The `ClientHello` without its header, joined from the records that it came in.
fn message(bytes: &[u8]) -> Result<Vec<u8>, Stop> {
    let mut records = Part(bytes);
    let mut message = Vec::new();
    loop {
        match records.0 {
            // Handshake, of any version 3.x.
            [0x16] | [0x16, 3, ..] => {}
            [] => return Err(Stop::Incomplete),
            _ => return Err(Stop::Broken),
        }
        let header = records.take(5).map_err(|_| Stop::Incomplete)?;
        let length = usize::from(header[3]) << 8 | usize::from(header[4]);
        if length == 0 || length > MOST_HELLO {
            return Err(Stop::Broken);
        }
        let here = records.0.len().min(length);
        message.extend_from_slice(&records.0[..here]);
        records.0 = &records.0[here..];
        match message[..] {
            [1, high, middle, low, ..] => {
                let whole = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                if whole > MOST_HELLO {
                    return Err(Stop::Broken);
                }
                if message.len() - 4 >= whole {
                    message.truncate(4 + whole);
                    message.drain(..4);
                    return Ok(message);
                }
            }
            [1, ..] | [] => {}
            _ => return Err(Stop::Broken),
        }
        if here < length {
            return Err(Stop::Incomplete);
        }
    }
}

/// The first DNS name of the extension's list.
fn name(mut list: Part<'_>) -> Result<Option<String>, Stop> {
    while !list.0.is_empty() {
        let kind = list.take(1)?[0];
        let name = list.list_of_u16()?;
        if kind == 0 {
            let name = std::str::from_utf8(name.0).map_err(|_| Stop::Broken)?;
            let known = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte));
            return match known && (1..=255).contains(&name.len()) {
                true => Ok(Some(name.to_ascii_lowercase())),
                false => Err(Stop::Broken),
            };
        }
    }
    Ok(None)
}

/// What is left to read of a part that is there as a whole.
struct Part<'a>(&'a [u8]);

impl<'a> Part<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Stop::Broken)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, Stop> {
        let bytes = self.take(2)?;
        Ok(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
    }

    /// A part behind its length in one byte.
    fn list_of_u8(&mut self) -> Result<Part<'a>, Stop> {
        let length = self.take(1)?[0];
        self.take(usize::from(length)).map(Part)
    }

    /// A part behind its length in two bytes.
    fn list_of_u16(&mut self) -> Result<Part<'a>, Stop> {
        let length = self.u16()?;
        self.take(usize::from(length)).map(Part)
    }
}
