//! Examples beyond the recorded ones, and properties of everything that is written.

mod answers;
mod requests;
mod rules;

use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use wire::http1::{BodyLength, Limits, RequestHead, RequestScanner};

use super::*;
use crate::http::access_log::write_line;
use crate::table::{Endpoint, PoolSettings, RouteKey, Table, TableSettings};

const NOW: Times = Times {
    mono: 1_000_000_000,
    wall: 1_795_249_040_286_360_016,
};

/// A pipeline with one route, `a.ex.com`, and its client.
struct Fixture {
    pipeline: Pipeline,
    table: Table,
    client: Client,
    exchange: Exchange,
    head: RequestHead,
}

impl Fixture {
    fn new(change: impl FnOnce(&mut HttpSettings)) -> Self {
        let mut settings = HttpSettings::default();
        change(&mut settings);
        let fixture = Self {
            pipeline: Pipeline::new(Arc::new(settings)),
            table: Table::new(TableSettings::default()),
            client: Client::new("203.0.113.9:4711".parse().unwrap(), None),
            exchange: Exchange::default(),
            head: RequestHead::default(),
        };
        fixture.route("a.ex.com", &PoolSettings::default());
        fixture
    }

    fn route(&self, uri: &str, pool: &PoolSettings) {
        let endpoint = Endpoint {
            identity: "10.0.0.1:8080".into(),
            app: "app-guid".into(),
            instance_id: "instance-guid".into(),
            instance_index: "3".into(),
            ..Endpoint::default()
        };
        let key = RouteKey::new(uri).unwrap();
        self.table.register(&key, endpoint, pool, NOW.mono);
    }

    fn admit(&mut self, request: &str) -> Admission {
        self.admit_bytes(request.replace('\n', "\r\n").as_bytes())
    }

    fn admit_bytes(&mut self, request: &[u8]) -> Admission {
        let mut scanner = RequestScanner::new(Limits::default());
        let length = scanner.head(request, &mut self.head);
        assert!(matches!(length, Ok(Some(_))), "{length:?}");
        self.pipeline.admit(
            &self.head,
            &self.client,
            &self.table,
            NOW,
            &mut StdRng::seed_from_u64(1),
            &mut self.exchange,
        )
    }

    /// What the endpoint gets.
    fn sent(&mut self, request: &str) -> String {
        assert_eq!(self.admit(request), Admission::Forward, "{request}");
        let pool = self.exchange.pool().cloned().unwrap();
        let endpoint = pool.endpoints()[0].clone();
        self.exchange.progress.endpoint = Some(endpoint.clone());
        let straight = self.exchange.route_service().is_none();
        let mut out = Vec::new();
        self.pipeline.write_request(
            &self.head,
            &mut self.exchange,
            straight.then_some(&endpoint),
            &mut out,
        );
        String::from_utf8(out).unwrap()
    }

    /// What the client gets.
    fn answered(&mut self, status: u16, fields: &str, body: BodyLength) -> (String, Promise) {
        let answer = Answer {
            status,
            fields: fields.as_bytes(),
            body,
        };
        let mut out = Vec::new();
        let promise = self.pipeline.write_answer(
            &self.head,
            &mut self.exchange,
            &answer,
            true,
            NOW,
            &mut out,
        );
        (String::from_utf8(out).unwrap(), promise)
    }

    /// What the client gets of a request that is refused.
    fn refused(&mut self, request: &str) -> String {
        let Admission::Answer(refusal) = self.admit(request) else {
            panic!("{request} is not refused");
        };
        let mut out = Vec::new();
        self.pipeline
            .write_refusal(&self.head, &mut self.exchange, refusal, true, NOW, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Its line in the access log, as far as it has come.
    fn logged(&self) -> String {
        let mut line = Vec::new();
        write_line(
            &self.pipeline,
            &self.head,
            &self.client,
            &self.exchange,
            NOW,
            &mut line,
        );
        String::from_utf8(line).unwrap()
    }
}

/// The value of a field within a head.
fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
