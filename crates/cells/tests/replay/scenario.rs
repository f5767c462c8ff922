//! The recorded files.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub struct Scenario {
    pub name: String,
    #[serde(default)]
    requires: Requires,
    pub steps: Vec<Step>,
}

#[derive(Deserialize, Default)]
struct Requires {
    converge_repeat_interval: Option<String>,
}

#[derive(Deserialize)]
pub struct Step {
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub method: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub request: Bytes,
    #[serde(default)]
    pub response: Response,
    #[serde(default)]
    pub volatile: Vec<String>,
    #[serde(default)]
    pub unordered: Vec<String>,
    #[serde(default)]
    pub events: Vec<Event>,
    #[serde(default)]
    pub outbound: Vec<Outbound>,
    pub quirk: Option<String>,
    pub stream: Option<Stream>,
    pub stub: Option<Stub>,
    #[serde(default)]
    pub ms: u64,
}

#[derive(Deserialize, Default)]
pub struct Bytes {
    pub message: Option<String>,
    hex: Option<String>,
    zlib_base64: Option<String>,
    #[serde(default)]
    pub headers: Vec<Header>,
}

#[derive(Deserialize)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize, Default)]
pub struct Response {
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub content_type: String,
    pub text: Option<String>,
    #[serde(default)]
    pub grpc_code_number: u32,
    #[serde(default)]
    pub grpc_message: String,
    #[serde(flatten)]
    pub body: Bytes,
}

#[derive(Deserialize)]
pub struct Event {
    pub stream: String,
    pub event: String,
    pub message: String,
    data_hex: Option<String>,
    zlib_base64: Option<String>,
    #[serde(default)]
    pub volatile: Vec<String>,
}

#[derive(Deserialize)]
pub struct Outbound {
    pub target: String,
    pub method: String,
    pub path: String,
    pub content_type: Option<String>,
    pub x_vcap_request_id: Option<String>,
    pub json: Option<Value>,
    #[serde(default)]
    pub volatile: Vec<String>,
    #[serde(default)]
    pub unordered: Vec<String>,
}

#[derive(Deserialize)]
pub struct Stream {
    pub name: String,
    pub method: String,
    pub path: String,
    #[serde(default)]
    request_hex: String,
    pub response_head: Vec<String>,
}

#[derive(Deserialize)]
pub struct Stub {
    pub target: String,
    pub status: u16,
}

impl Scenario {
    /// Time between two passes of convergence; `None` when there was none.
    pub fn converge_interval(&self) -> Option<Duration> {
        let text = self.requires.converge_repeat_interval.as_deref()?;
        let seconds = text.strip_suffix('s').expect("in seconds").parse().unwrap();
        Some(Duration::from_secs(seconds))
    }
}

impl Bytes {
    pub fn bytes(&self) -> Vec<u8> {
        bytes(self.hex.as_deref(), self.zlib_base64.as_deref())
    }
}

impl Event {
    pub fn bytes(&self) -> Vec<u8> {
        bytes(self.data_hex.as_deref(), self.zlib_base64.as_deref())
    }
}

impl Stream {
    pub fn request(&self) -> Vec<u8> {
        bytes(Some(&self.request_hex), None)
    }
}

/// Bytes that were recorded in one form or the other.
pub fn bytes(hex: Option<&str>, zlib: Option<&str>) -> Vec<u8> {
    if let Some(zlib) = zlib {
        let packed = base64::engine::general_purpose::STANDARD
            .decode(zlib)
            .unwrap();
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(&*packed)
            .read_to_end(&mut bytes)
            .unwrap();
        return bytes;
    }
    let digits = hex.unwrap_or_default().as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The recorded files.
pub fn files() -> impl Iterator<Item = Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bbs");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| std::fs::read(path).unwrap())
}

/// Every recorded scenario, by name.
pub fn all() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = files()
        .map(|file| serde_json::from_slice(&file).unwrap())
        .collect();
    scenarios.sort_by(|left, right| left.name.cmp(&right.name));
    scenarios
}
