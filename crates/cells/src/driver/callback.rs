//! Where the BBS hands over the results of tasks.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::tasks::TaskBook;
use super::{Names, lock};

/// Largest result that is read; the protocol allows 51,200 bytes and a little around.
const RESULT_BYTES: usize = 1 << 20;
const RESULT_WITHIN: Duration = Duration::from_secs(10);

/// What is used of a result.
#[derive(Deserialize)]
struct Completed {
    task_guid: String,
    #[serde(default)]
    failed: bool,
}

struct Callbacks {
    names: Names,
    book: Arc<Mutex<TaskBook>>,
}

/// Listens on a free port of `ip`. Returns the address to be called and
/// the work that answers, which ends when `stopped` says so.
pub(super) async fn listen(
    ip: IpAddr,
    names: Names,
    book: Arc<Mutex<TaskBook>>,
    mut stopped: watch::Receiver<bool>,
) -> std::io::Result<(String, JoinHandle<()>)> {
    let listener = net::bind(SocketAddr::from((ip, 0))).await?;
    let address = format!("http://{}/results", listener.local_addr()?);
    let handler = Arc::new(Callbacks { names, book });
    let (stop, shutdown) = net::shutdown();
    let serving = tokio::spawn(net::boxed(async move {
        tokio::select! {
            () = net::serve(listener, None, net::Limits::default(), handler, shutdown) => {}
            // The driver closes: nobody waits for our answers any more.
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        drop(stop);
    }));
    Ok((address, serving))
}

impl net::Handler for Callbacks {
    async fn handle(&self, request: Request<Incoming>) -> Response<net::Body> {
        let mut response = Response::new(net::empty());
        *response.status_mut() = self.take(request).await;
        response
    }
}

impl Callbacks {
    async fn take(&self, request: Request<Incoming>) -> StatusCode {
        if request.method() != Method::POST {
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let body = net::read_body(request.into_body(), RESULT_BYTES, RESULT_WITHIN).await;
        let completed = body
            .ok()
            .and_then(|body| serde_json::from_slice::<Completed>(&body).ok());
        let Some(completed) = completed else {
            return StatusCode::BAD_REQUEST;
        };
        match self.names.task_number(&completed.task_guid) {
            None => StatusCode::NOT_FOUND,
            Some(n) => {
                lock(&self.book).called_back(n, completed.failed);
                StatusCode::OK
            }
        }
    }
}
