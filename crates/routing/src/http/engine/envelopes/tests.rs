use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc;
use std::time::Instant;

use proptest::prelude::*;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::http::engine::tests::tls::{Authority, parsed, provider};
use crate::http::envelopes::loggregator;
use crate::http::settings::EnvelopesTo;
use routing_api::client::PeerTls;

/// Longest wait of a test; reached only by one that fails.
const LONG: Duration = Duration::from_secs(20);

/// An envelope of the first protocol that can be converted: required fields and a log.
fn envelope(text: &str) -> Vec<u8> {
    // origin "r", event type 5, log message {message, OUT, timestamp 1}
    let mut log = vec![0x0a, u8::try_from(text.len()).unwrap()];
    log.extend_from_slice(text.as_bytes());
    log.extend_from_slice(&[0x10, 1, 0x18, 1]);
    let mut envelope = vec![0x0a, 1, b'r', 0x10, 5];
    envelope.extend_from_slice(&[0x42, u8::try_from(log.len()).unwrap()]);
    envelope.extend_from_slice(&log);
    envelope
}

fn several(texts: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    for text in texts {
        let envelope = envelope(text);
        all.push(u8::try_from(envelope.len()).unwrap());
        all.extend_from_slice(&envelope);
    }
    all
}

fn settings(to: EnvelopesTo) -> EnvelopeSettings {
    EnvelopeSettings {
        to,
        ..EnvelopeSettings::default()
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends envelopes, and waits until the thread has ended.
fn send(settings: &EnvelopeSettings, texts: &[&str]) -> Arc<ThreadCounters> {
    let counters: Arc<ThreadCounters> = Arc::default();
    let sender = EnvelopeSender::start(settings, Arc::clone(&counters)).unwrap();
    let mut batches = sender.batches();
    let count = texts.len() as u64;
    batches.entry(0, count).extend_from_slice(&several(texts));
    assert_eq!(batches.hand_over().taken, count);
    drop(batches);
    drop(sender.full);
    sender.thread.join().unwrap();
    counters
}

#[test]
fn each_envelope_is_a_datagram() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let to = EnvelopesTo::Datagrams {
        address: format!("localhost:{port}"),
    };
    let counters = send(&settings(to), &["one", "two"]);
    let mut buffer = [0; 1024];
    for text in ["one", "two"] {
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], envelope(text));
    }
    assert_eq!(
        (counters.envelopes.get(), counters.envelope_drops.get()),
        (2, 0)
    );
}

#[test]
fn without_the_host_they_are_dropped_and_counted() {
    let to = EnvelopesTo::Datagrams {
        address: "nowhere.invalid:1".to_owned(),
    };
    let counters = send(&settings(to), &["one", "two"]);
    assert_eq!(
        (counters.envelopes.get(), counters.envelope_drops.get()),
        (0, 2)
    );
}

/// What an agent does with a stream.
#[derive(Clone, Copy)]
enum Deed {
    Take,
    Refuse,
    /// Never makes room, and never answers.
    Ignore,
}

/// Texts of logs that an agent took.
type Texts = Vec<String>;

/// An agent that wants certificates of `authority`, and does with its streams, in turn, what
/// it is told; with the last one for ever.
fn agent(authority: &Authority, deeds: &'static [Deed]) -> (String, mpsc::Receiver<Texts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    listener.set_nonblocking(true).unwrap();
    let (chain, key) = parsed(&authority.sign("metron"));
    let roots = Arc::new(authority.roots());
    let clients = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .build()
        .unwrap();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (took, taken) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            for turn in 0.. {
                let deed = deeds[turn.min(deeds.len() - 1)];
                let (socket, _) = listener.accept().await.unwrap();
                let (acceptor, took) = (acceptor.clone(), took.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(socket).await {
                        serve(stream, deed, took).await;
                    }
                });
            }
        });
    });
    (address, taken)
}

async fn serve<S>(stream: S, deed: Deed, took: mpsc::Sender<Texts>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut answer))) = connection.accept().await {
        assert_eq!(request.method(), "POST");
        assert_eq!(request.uri().path(), "/loggregator.v2.Ingress/BatchSender");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let took = took.clone();
        match deed {
            Deed::Take => {
                tokio::spawn(async move {
                    take(request.into_body(), &took).await;
                    let ok = http::Response::builder()
                        .header("content-type", "application/grpc")
                        .header("grpc-status", "0");
                    let _ = answer.send_response(ok.body(()).unwrap(), true);
                });
            }
            Deed::Refuse => {
                let refused = http::Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "12");
                let _ = answer.send_response(refused.body(()).unwrap(), true);
            }
            Deed::Ignore => {
                tokio::spawn(async move {
                    let _kept = (request, answer);
                    std::future::pending::<()>().await;
                });
            }
        }
    }
}

async fn take(mut body: h2::RecvStream, took: &mpsc::Sender<Texts>) {
    let mut bytes = Vec::new();
    while let Some(Ok(part)) = body.data().await {
        let _ = body.flow_control().release_capacity(part.len());
        bytes.extend_from_slice(&part);
        while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let Some(message) = rest.get(..length) else {
                break;
            };
            assert_eq!(head[0], 0, "not compressed");
            let batch = loggregator::EnvelopeBatch::decode(message).unwrap();
            let texts = batch.batch.iter().map(loggregator::Envelope::text);
            let _ = took.send(texts.collect());
            bytes.drain(..5 + length);
        }
    }
}

fn to_agent(authority: &Authority, address: String) -> EnvelopesTo {
    let (certificate, key) = authority.sign("router");
    EnvelopesTo::Agent {
        address,
        server_name: "metron".to_owned(),
        tls: PeerTls {
            authorities: authority.pem(),
            certificate,
            key: key.into(),
        },
    }
}

#[test]
fn an_agent_takes_batches_over_mutual_tls() {
    let authority = Authority::new();
    let (address, taken) = agent(&authority, &[Deed::Take]);
    let counters = send(&settings(to_agent(&authority, address)), &["one", "two"]);
    assert_eq!(taken.recv_timeout(LONG).unwrap(), ["one", "two"]);
    assert_eq!(
        (counters.envelopes.get(), counters.envelope_drops.get()),
        (2, 0)
    );
}

#[test]
fn an_agent_of_another_authority_is_told_nothing() {
    let authority = Authority::new();
    let (address, taken) = agent(&Authority::new(), &[Deed::Take]);
    let counters = send(&settings(to_agent(&authority, address)), &["one"]);
    assert_eq!(
        (counters.envelopes.get(), counters.envelope_drops.get()),
        (0, 1)
    );
    assert!(taken.try_recv().is_err());
}

/// A stream that was refused takes nothing more; the next one, a while later, does.
#[test]
fn after_a_refusal_there_is_another_stream() {
    let authority = Authority::new();
    let (address, taken) = agent(&authority, &[Deed::Refuse, Deed::Take]);
    let counters: Arc<ThreadCounters> = Arc::default();
    let settings = settings(to_agent(&authority, address));
    let sender = EnvelopeSender::start(&settings, Arc::clone(&counters)).unwrap();
    let mut batches = sender.batches();
    let began = Instant::now();
    let texts = loop {
        batches.entry(0, 1).extend_from_slice(&several(&["again"]));
        batches.hand_over();
        if let Ok(texts) = taken.recv_timeout(Duration::from_millis(20)) {
            break texts;
        }
        assert!(began.elapsed() < LONG, "no second stream");
    };
    assert_eq!(texts, ["again"]);
    drop(batches);
    sender.finish();
}

/// One that takes nothing costs envelopes, and ends no thread.
#[test]
fn an_agent_that_never_reads_costs_counted_envelopes() {
    let authority = Authority::new();
    let (address, _taken) = agent(&authority, &[Deed::Ignore]);
    let counters: Arc<ThreadCounters> = Arc::default();
    let settings = settings(to_agent(&authority, address));
    let sender = EnvelopeSender::start(&settings, Arc::clone(&counters)).unwrap();
    let mut batches = sender.batches();
    // More than the window of a stream and of its connection: 64 KiB.
    let text = "x".repeat(100);
    for _ in 0..10 {
        let entry = batches.entry(0, 100);
        for _ in 0..100 {
            entry.extend_from_slice(&several(&[&text]));
        }
        assert_eq!(batches.hand_over().taken, 100);
    }
    until("a drop", || counters.envelope_drops.get() > 0);
    drop(batches);
    sender.finish();
}

#[test]
fn bad_certificates_are_told_at_the_start() {
    let to = EnvelopesTo::Agent {
        address: "127.0.0.1:1".to_owned(),
        server_name: "metron".to_owned(),
        tls: PeerTls {
            authorities: "none".to_owned(),
            ..PeerTls::default()
        },
    };
    let error = check(&settings(to)).unwrap_err().to_string();
    assert!(error.contains("TLS of envelopes"), "{error}");
}

proptest! {
    /// Whatever stands in a buffer, taking it apart ends.
    #[test]
    fn anything_is_taken_apart(bytes: Vec<u8>) {
        let length: usize = apart(&bytes).map(<[u8]>::len).sum();
        prop_assert!(length <= bytes.len());
        let _ = messages(&bytes, 3);
    }

    #[test]
    fn messages_have_at_most_so_many(texts in proptest::collection::vec("[a-z]{0,9}", 0..20), most in 1..7_usize) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let bytes = several(&texts);
        prop_assert_eq!(apart(&bytes).count(), texts.len());
        let mut all = Vec::new();
        for (count, message) in messages(&bytes, most) {
            let batch = loggregator::EnvelopeBatch::decode(&message[5..]).unwrap();
            prop_assert!(batch.batch.len() <= most);
            prop_assert_eq!(count, batch.batch.len() as u64);
            all.extend(batch.batch.iter().map(loggregator::Envelope::text));
        }
        prop_assert_eq!(all, texts);
    }
}
