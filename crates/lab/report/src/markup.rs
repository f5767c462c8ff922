//! What pages without a program have in common.

/// How they look, by day and by night.
pub(crate) const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;\
color:#1a1a1a;background:#fff}\
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .7rem;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}\
.scroll{overflow-x:auto}.no{color:#b00020}.so{color:#7a5b00}\
svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:currentColor}\
.key span{display:inline-block;margin-right:1rem}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181c}th,td{border-color:#333}\
.no{color:#ff8a80}.so{color:#ffd54f}a{color:#8ab4f8}}";

/// Colours that those who see few of them can tell apart (Okabe and Ito 2008).
pub(crate) const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f",
];

/// The beginning of a page, up to its own text: it asks nobody for anything, and runs no program.
pub(crate) fn head(title: &str, style: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title><style>{STYLE}{style}</style>",
        escaped(title)
    )
}

/// Says that there are more of something than are shown, and where; empty without any.
pub(crate) fn and_more(number: usize, [one, many]: [&str; 2], which: &str) -> String {
    match number {
        0 => String::new(),
        _ => format!(
            "<p>And {}{which}.</p>",
            units::counted(number as u64, one, many)
        ),
    }
}

/// Text that is text in HTML, also within quotes.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

/// The part of a URL that leads to a folder of this name.
pub(crate) fn in_url(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                safe.push(char::from(byte));
            }
            byte => safe += &format!("%{byte:02X}"),
        }
    }
    safe
}
