//! The static table (RFC 7541 appendix A).

/// Name and value of entry 1 and those behind it.
#[rustfmt::skip]
pub(super) const ENTRIES: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""),
    ("range", ""), ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""),
    ("set-cookie", ""), ("strict-transport-security", ""), ("transfer-encoding", ""),
    ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// Where a name of a field is; `None`: it is not there. Pseudo-header fields are not looked for.
#[rustfmt::skip]
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"accept-charset" => 15, b"accept-encoding" => 16, b"accept-language" => 17,
        b"accept-ranges" => 18, b"accept" => 19, b"access-control-allow-origin" => 20,
        b"age" => 21, b"allow" => 22, b"authorization" => 23, b"cache-control" => 24,
        b"content-disposition" => 25, b"content-encoding" => 26, b"content-language" => 27,
        b"content-length" => 28, b"content-location" => 29, b"content-range" => 30,
        b"content-type" => 31, b"cookie" => 32, b"date" => 33, b"etag" => 34, b"expect" => 35,
        b"expires" => 36, b"from" => 37, b"host" => 38, b"if-match" => 39,
        b"if-modified-since" => 40, b"if-none-match" => 41, b"if-range" => 42,
        b"if-unmodified-since" => 43, b"last-modified" => 44, b"link" => 45, b"location" => 46,
        b"max-forwards" => 47, b"proxy-authenticate" => 48, b"proxy-authorization" => 49,
        b"range" => 50, b"referer" => 51, b"refresh" => 52, b"retry-after" => 53,
        b"server" => 54, b"set-cookie" => 55, b"strict-transport-security" => 56,
        b"transfer-encoding" => 57, b"user-agent" => 58, b"vary" => 59, b"via" => 60,
        b"www-authenticate" => 61,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are() {
        for (at, (name, _)) in ENTRIES.iter().enumerate() {
            let found = index_of(name.as_bytes());
            assert_eq!(found, (!name.starts_with(':')).then_some(at + 1), "{name}");
        }
        assert_eq!(index_of(b"x"), None);
    }
}
