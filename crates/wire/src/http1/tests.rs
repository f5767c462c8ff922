use super::*;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    status: Option<u16>,
    fields: Vec<u8>,
    body: Vec<u8>,
    trailers: Vec<u8>,
}

impl Sink for Seen {
    fn head(&mut self, status: u16, fields: &[u8]) {
        assert!(self.status.is_none(), "two final heads in one answer");
        self.status = Some(status);
        self.fields = fields.to_vec();
    }
    fn body(&mut self, part: &[u8]) {
        assert!(!part.is_empty());
        self.body.extend_from_slice(part);
    }
    fn trailers(&mut self, fields: &[u8]) {
        assert!(self.trailers.is_empty());
        self.trailers = fields.to_vec();
    }
}

/// One answer of all the bytes, given at once; the stream ends behind them.
fn whole(input: &[u8], expect: Expect) -> Result<(Complete, Seen, usize), ResponseError> {
    let mut scanner = ResponseScanner::new(Limits::default());
    scanner.expect(expect);
    let mut seen = Seen::default();
    let scan = scanner.scan(input, &mut seen)?;
    let complete = match scan.complete {
        Some(complete) => complete,
        None => scanner.end(&mut seen)?,
    };
    Ok((complete, seen, scan.consumed))
}

fn get(input: &str) -> Result<(Complete, Seen, usize), ResponseError> {
    whole(input.as_bytes(), Expect::Body)
}

#[test]
fn a_plain_answer() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer: x\r\n\r\nhelloHTTP/1.1";
    let (complete, seen, consumed) = get(input).unwrap();
    assert_eq!(
        complete,
        Complete {
            status: 200,
            keep_alive: true,
            body_bytes: 5,
            upgraded: false
        }
    );
    assert_eq!(seen.status, Some(200));
    assert_eq!(seen.fields, b"Content-Length: 5\r\nServer: x\r\n");
    assert_eq!(seen.body, b"hello");
    assert_eq!(&input[consumed..], "HTTP/1.1");
}
