//! Nodes of the fleet, and what they send.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use compliance::agent::{self, AgentPolicy, Hollow, Rates, RunSettings};
use compliance::inventory::{InventorySignature, hollow, write};
use compliance::reports::moment::Moment;
use compliance::reports::signature::{NodeCertificate, SigningKey, sign};
use compliance::trust::{self, Identity, ServerPin};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::Request;
use http_body_util::Full;
use jiff::Timestamp;
use net::{Answer, Client, ClientOptions};

use super::Failure;
use super::realistic;

/// A node that is known to the server.
pub(super) struct Enrolled {
    pub(super) id: String,
    identity: Identity,
    key: SigningKey,
    certificate: NodeCertificate,
}

/// A run, signed and packed.
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) body: Bytes,
    pub(super) reports: u64,
}

pub(super) fn hostname(number: usize) -> String {
    format!("srv-{number:05}.dc{}.example.org", number % 7)
}

pub(super) async fn enrolled(
    number: usize,
    client: &Client,
    url: &str,
) -> Result<Enrolled, Failure> {
    let id = format!("{:08x}-0000-4000-8000-{number:012x}", number * 7_919);
    let identity = Identity::make(Some(&id), &[])?;
    let key = SigningKey::from_pem(identity.key.as_bytes())?;
    let certificate = NodeCertificate::from_pem(identity.certificate.as_bytes())?;
    let now = Timestamp::now();
    let (hostname, pem) = (hostname(number), &identity.certificate);
    let mut facts = hollow::node(number as u64, &id, &hostname, "root", pem, now);
    facts.node.properties = realistic::properties(number, "1");
    let xml = write(&facts);
    let date = now.to_string();
    let signature = InventorySignature::sign(xml.as_bytes(), &key, &certificate, &hostname, &date)?;
    let path = format!("{url}/inventories/{id}.ocs");
    put(client, &format!("{path}.sign"), signature.to_file().into()).await?;
    let answer = put(client, &format!("{path}.gz"), packed(xml.as_bytes())?).await?;
    if answer.status.as_u16() != 201 {
        return Err(format!("an inventory was answered {}", answer.status).into());
    }
    Ok(Enrolled {
        id,
        identity,
        key,
        certificate,
    })
}

impl Enrolled {
    /// The policy of the node, as its agent reads it.
    pub(super) async fn policy(&self, url: &str) -> Result<AgentPolicy, Failure> {
        let client = client(Some(&self.identity))?;
        let request = Request::get(format!("{url}/policies/{}/rules/policy.json.gz", self.id));
        let answer = client.request(request.body(Full::default())?).await?;
        let json = std::io::read_to_string(GzDecoder::new(&answer.body[..]))?;
        Ok(AgentPolicy::from_json(&json, json.len())?)
    }

    /// Draws a run, signs and packs it. Each round is another second.
    pub(super) fn upload(&self, policy: &AgentPolicy, round: usize) -> Result<Upload, Failure> {
        let rates = Rates {
            error: 0.02,
            repaired: 0.05,
            ..Rates::NONE
        };
        let mut methods = Hollow::new(rates, self.id.len() as u64, round as u64)?;
        let now = Timestamp::now().as_second() - 600 + round as i64;
        let start = Moment::utc(Timestamp::from_second(now)?);
        let settings = RunSettings::default();
        let outcome = agent::run(policy, &mut methods, &settings, start, || Duration::ZERO);
        let (key, certificate) = (&self.key, &self.certificate);
        let signed = sign(outcome.log.as_bytes(), key, certificate, Timestamp::now())?;
        Ok(Upload {
            name: format!("{}.gz", outcome.info.file_name()),
            body: packed(&signed)?,
            reports: outcome.reports,
        })
    }
}

impl Upload {
    /// Sends it; anything but that it is kept is a failure.
    pub(super) async fn send(&self, client: &Client, url: &str) -> Result<(), Failure> {
        let path = format!("{url}/reports/{}", self.name);
        let answer = put(client, &path, self.body.clone()).await?;
        match answer.status.as_u16() {
            201 => Ok(()),
            status => Err(format!("an upload was answered {status}").into()),
        }
    }
}

fn packed(bytes: &[u8]) -> Result<Bytes, Failure> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.into())
}

pub(super) fn client(identity: Option<&Identity>) -> Result<Client, Failure> {
    let tls = trust::client(Arc::new(ServerPin::default()), identity)?;
    Ok(Client::new(ClientOptions {
        connections_per_host: 1,
        answer_within: Duration::from_secs(600),
        tls: Some(tls),
        ..ClientOptions::default()
    }))
}

async fn put(client: &Client, url: &str, body: Bytes) -> Result<Answer, Failure> {
    let request = Request::put(url).body(Full::new(body))?;
    Ok(client.request(request).await?)
}
