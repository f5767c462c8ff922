//! The REST API over HTTPS.

/// Cases, and what is to come of each.
macro_rules! cases {
    ($($case:expr => $expected:expr;)*) => {
        [$(($case, $expected)),*]
    };
}

mod clients;
mod decisions;
mod history;
mod killed;
mod reads;
mod restart;
mod schema;
mod settings;
mod standings;
mod techniques;
mod tokens;
mod told;
mod writes;

use std::path::Path;

use compliance::server::Running;
use http::Method;
use serde_json::{Value, json};

use crate::peers::{A, Node, server, url};
use schema::Document;

/// An administrator.
pub(crate) struct Admin {
    node: Node,
    token: String,
    document: Document,
}

/// What a call was answered with.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Admin {
    pub(crate) async fn of(folder: &Path, url: &str) -> Self {
        let token = std::fs::read_to_string(folder.join("api-token")).unwrap();
        let node = Node::new("00000000-0000-4000-8000-00000000ffff", url);
        let (status, text) = node.get("/openapi.json", &[]).await;
        assert_eq!(status, 200);
        let document = Document(serde_json::from_str(&text).unwrap());
        Self {
            node,
            token,
            document,
        }
    }

    /// The same with another token.
    pub(crate) fn with(&mut self, token: &str) {
        token.clone_into(&mut self.token);
    }

    /// Calls, and holds the answer against what `/openapi.json` says of it.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answered {
        let text = body.map_or_else(String::new, |body| body.to_string());
        let headers = [("x-api-token", &*self.token)];
        let whole = format!("/rudder/api/latest/{path}");
        let answer = self.node.request(method.clone(), &whole, &headers, text);
        let answer = answer.await.unwrap();
        let status = answer.status.as_u16();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        if status == 200 {
            self.document.check(&method, path, &body);
        }
        Answered { status, body }
    }

    /// The data of a call that succeeds.
    pub(crate) async fn data(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let answered = self.call(method, path, body).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body["data"].clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.data(Method::GET, path, None).await
    }

    /// Puts definitions as `headroom compliance apply` does; the plan.
    pub(crate) async fn apply(&self, all: &Value) -> Value {
        let now = self.get("definitions").await;
        let path = format!("definitions?base={}", now["version"]);
        self.data(Method::PUT, &path, Some(all.clone())).await["plan"].clone()
    }
}

/// A technique with one call of a method.
pub(crate) fn technique() -> Value {
    json!({
        "id": "file", "version": "1.0", "name": "A file", "multiInstance": true,
        "body": {"methods": {
            "params": [{"id": "p1", "name": "path"}],
            "items": [{"id": "i1", "name": "Text", "method": "file_absent",
                       "params": {"path": "${file.path}"}}],
        }},
    })
}

/// What a folder defines: a technique, a directive of it, a group of all and a rule.
pub(crate) fn folder() -> Value {
    let values = json!({"section": {"name": "sections",
        "vars": [{"var": {"name": "path", "value": "/tmp/x"}}]}});
    json!({
        "techniques": {"file/1.0": technique()},
        "directives": {"d": {"id": "d", "displayName": "D", "techniqueName": "file",
            "techniqueVersion": "1.0", "parameters": values}},
        "groups": {"g": {"id": "g", "displayName": "G", "dynamic": true, "query": {"where": [
            {"objectType": "node", "attribute": "nodeId", "comparator": "exists"}]}}},
        "rules": {"r": {"id": "r", "displayName": "R", "directives": ["d"],
            "targets": ["group:g"]}},
        "parameters": {"p": {"id": "p", "value": {"a": 1}}},
    })
}

/// A server with that folder and a node that has reported once.
pub(crate) async fn reported(folder_of_data: &Path) -> (Running, Admin, Node) {
    let server = server(folder_of_data).await;
    let admin = Admin::of(folder_of_data, &url(&server)).await;
    let node = Node::new(A, &url(&server));
    assert_eq!(node.enrol().await, 201);
    let first = node.policy().await.0;
    admin.apply(&folder()).await;
    let second = node.policy_after(&first).await;
    let start = jiff::Timestamp::now().as_second();
    let report = "A file@@result_repaired@@r@@d@@i1@@Text@@/tmp/x";
    assert_eq!(node.run(start, &second, &[report]).await, 201);
    (server, admin, node)
}
