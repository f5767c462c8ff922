//! The pipeline as a router would drive it, without sockets.

use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use routing::http::access_log;
use routing::http::pipeline::retry::{Attempt, Failure, Verdict, judge};
use routing::http::pipeline::{
    Admission, Answer, Client, ClientBody, Exchange, Pipeline, Refusal, Times,
};
use routing::http::settings::{ExtraField, HttpSettings, TracingSettings};
use routing::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};
use wire::http1::{BodyLength, Limits, RequestHead, RequestScanner};

/// When everything happens: 2026-11-21T08:17:20Z.
pub(crate) const NOW: Times = Times {
    mono: 1_000_000_000,
    wall: 1_795_249_040_286_360_016,
};
pub(crate) const APP: &str = "11111111-2222-3333-4444-555555555555";

/// What a backend does with a request.
pub(crate) enum Backend<'a> {
    /// Answers with the request that it got, behind more fields.
    Echo(&'a str),
    /// Answers this.
    Says {
        status: u16,
        fields: &'a str,
        body: BodyLength,
    },
    /// Fails.
    Fails(Failure<'a>),
}

pub(crate) struct Router {
    pub(crate) pipeline: Pipeline,
    pub(crate) table: Table,
    pub(crate) exchange: Exchange,
    pub(crate) head: RequestHead,
    pub(crate) client: Client,
    pub(crate) now: Times,
}

/// What became of a request.
pub(crate) struct Outcome {
    /// Head of the answer, and its body as far as the pipeline or the echo made it.
    pub(crate) answer: String,
    /// What the backend saw.
    pub(crate) request: String,
    pub(crate) keep_alive: bool,
}

impl Router {
    /// The router of the first transcript, or with `traced` that of the second.
    pub(crate) fn recorded(traced: bool) -> Self {
        let mut settings = HttpSettings {
            address: "192.0.2.2".parse().unwrap(),
            ..HttpSettings::default()
        };
        settings.headers.add = vec![("X-Added".to_owned(), "v1".to_owned())];
        settings.headers.remove = vec!["X-Remove-Me".to_owned()];
        settings.headers.trace_key = "22".into();
        settings.access_log.extra_headers = vec!["X-My-Log".to_owned()];
        settings.access_log.extra_fields = vec![
            ExtraField::FailedAttempts,
            ExtraField::BackendTime,
            ExtraField::LocalAddress,
        ];
        settings.route_services.secret = "secret".into();
        if traced {
            settings.tracing = TracingSettings {
                zipkin: true,
                w3c: true,
                w3c_tenant: String::new(),
            };
            settings.request_head_bytes = 3000;
        }
        Self::new(settings)
    }

    pub(crate) fn new(settings: HttpSettings) -> Self {
        Self {
            pipeline: Pipeline::new(Arc::new(settings)),
            table: Table::new(TableSettings::default()),
            exchange: Exchange::default(),
            head: RequestHead::default(),
            client: Client::new("127.0.0.1:45014".parse().unwrap(), None),
            now: NOW,
        }
    }

    pub(crate) fn route(&self, uri: &str, port: u16, instance: &str, pool: &PoolSettings) {
        let endpoint = Endpoint {
            identity: format!("127.0.0.1:{port}").into(),
            app: APP.into(),
            instance_id: instance.into(),
            instance_index: "0".into(),
            ..Endpoint::default()
        };
        let key = RouteKey::new(uri).unwrap();
        self.table.register(&key, endpoint, pool, NOW.mono);
    }

    pub(crate) fn admit(&mut self, request: &str) -> Admission {
        let mut random = StdRng::seed_from_u64(7);
        let mut scanner = RequestScanner::new(Limits::default());
        let length = scanner.head(request.as_bytes(), &mut self.head);
        assert!(matches!(length, Ok(Some(_))), "{request:?}: {length:?}");
        self.pipeline.admit(
            &self.head,
            &self.client,
            &self.table,
            self.now,
            &mut random,
            &mut self.exchange,
        )
    }

    /// A whole exchange.
    pub(crate) fn exchange(&mut self, request: &str, backend: &Backend<'_>) -> Outcome {
        let admission = self.admit(request);
        let (mut out, mut sent) = (Vec::new(), Vec::new());
        let keep_alive;
        match admission {
            Admission::Answer(refusal) => keep_alive = self.refuse(refusal, &mut out),
            Admission::HealthCheck => {
                keep_alive = self.pipeline.write_health(
                    &self.head,
                    &mut self.exchange,
                    true,
                    true,
                    NOW,
                    &mut out,
                );
            }
            Admission::Forward => {
                let endpoint = self.exchange.pool().unwrap().endpoints()[0].clone();
                self.exchange.progress.endpoint = Some(Arc::clone(&endpoint));
                self.exchange.progress.backend_started = NOW.mono + 1;
                self.pipeline.write_request(
                    &self.head,
                    &mut self.exchange,
                    Some(&endpoint),
                    &mut sent,
                );
                match backend {
                    Backend::Fails(failure) => {
                        let refusal = self.fail(*failure, &endpoint);
                        keep_alive = self.refuse(refusal, &mut out);
                    }
                    Backend::Echo(more) => {
                        // The recorded backend left out the empty line.
                        let echo = sent.len() - 2;
                        let fields = format!("Content-Length: {echo}\r\n{more}");
                        let body = BodyLength::Exactly(echo as u64);
                        keep_alive = self.answer(200, &fields, body, &mut out);
                        if self.head.method() != b"HEAD" {
                            out.extend_from_slice(&sent);
                        }
                    }
                    Backend::Says {
                        status,
                        fields,
                        body,
                    } => keep_alive = self.answer(*status, fields, *body, &mut out),
                }
            }
        }
        Outcome {
            answer: String::from_utf8(out).unwrap(),
            request: String::from_utf8(sent).unwrap(),
            keep_alive,
        }
    }

    pub(crate) fn answer(
        &mut self,
        status: u16,
        fields: &str,
        body: BodyLength,
        out: &mut Vec<u8>,
    ) -> bool {
        let answer = Answer {
            status,
            fields: fields.as_bytes(),
            body,
        };
        let promise =
            self.pipeline
                .write_answer(&self.head, &mut self.exchange, &answer, true, NOW, out);
        if let ClientBody::Exactly(length) = promise.body {
            self.exchange.progress.answer_body = length;
        }
        promise.keep_alive
    }

    pub(crate) fn fail(&mut self, failure: Failure<'_>, endpoint: &Endpoint) -> Refusal {
        let attempt = Attempt {
            number: 1,
            endpoints: 1,
            address: &endpoint.identity,
            local: Some("127.0.0.1:48736".parse().unwrap()),
            reused: false,
            head_sent: true,
            replayable: true,
            tls: false,
        };
        let (verdict, _) = judge(failure, &attempt, 3, &mut self.exchange);
        let Verdict::GiveUp(refusal) = verdict else {
            panic!("{failure:?} is tried again with one endpoint: {verdict:?}");
        };
        let progress = &mut self.exchange.progress;
        progress.failed_attempts = 1;
        progress.failed_finished = NOW.mono + 2;
        progress.backend_finished = NOW.mono + 2;
        refusal
    }

    /// Without a body that nobody has read, or with one: then the connection ends.
    pub(crate) fn refuse(&mut self, refusal: Refusal, out: &mut Vec<u8>) -> bool {
        let keep = !self.head.expects_continue();
        self.pipeline
            .write_refusal(&self.head, &mut self.exchange, refusal, keep, NOW, out)
    }

    pub(crate) fn log_line(&self, now: Times) -> String {
        let mut line = Vec::new();
        access_log::write_line(
            &self.pipeline,
            &self.head,
            &self.client,
            &self.exchange,
            now,
            &mut line,
        );
        String::from_utf8(line).unwrap()
    }
}
