//! HTTP/2 to backends: each connection carries one of the thread's connections, as a stream
//! at a time.

use rustix::io::Errno;
use wire::http2::{ClientSettings, Progress};
use wire::slab::Key;
use wire::stream::Stream;

use super::{BackendConnection, Backends, Http2Backend};
use crate::http::engine::context::Context;
use crate::http::engine::token;

impl Backends {
    /// The handshake of a connection has agreed on HTTP/2: it goes on over streams.
    ///
    /// # Errors
    /// The connection broke, or cannot be watched. It is of no use.
    pub(super) fn begin_http2(
        &mut self,
        connection: &mut BackendConnection,
        context: &Context,
    ) -> Result<(), Errno> {
        let head_bytes = context.shared.settings.response_head_bytes;
        let settings = ClientSettings {
            window: 1024 * 1024,
            send_buffer: 64 * 1024,
            head_bytes: u32::try_from(head_bytes).unwrap_or(u32::MAX),
            read_budget: 256 * 1024,
            ..ClientSettings::default()
        };
        let key = self.http2.values.reserve();
        let token = key.token(token::BACK);
        let poller = &context.poller;
        let mut begun = None;
        let replaced = connection.replace_stream(poller, |stream| {
            let (backend, stream) = Http2Backend::start(stream, settings, poller, token)?;
            begun = Some(backend);
            Ok(Stream::Carried(Box::new(stream)))
        });
        match (replaced, begun) {
            (Ok(()), Some(backend)) => {
                self.http2.values.put(key, Box::new(backend));
                self.turn_http2(key, true, context);
                Ok(())
            }
            (replaced, _) => {
                self.http2.release(key);
                let error = replaced.err();
                let errno = error.and_then(|it| Errno::from_io_error(&it));
                Err(errno.unwrap_or(Errno::IO))
            }
        }
    }

    /// Something happened to a connection of HTTP/2. If it has ended, so has what it carries.
    pub(crate) fn turn_http2(&mut self, key: Key, readable: bool, context: &Context) {
        let Some(backend) = self.http2.values.get_mut(key) else {
            return;
        };
        match backend.drive(readable, &context.poller) {
            Ok(Progress::More) => self.http2.look_again(key),
            Ok(_) => {}
            Err(_) => self.http2.release(key),
        }
    }

    /// Another look at connections that had more to read.
    pub(crate) fn revisit(&mut self, context: &Context) {
        for key in self.http2.again() {
            self.turn_http2(key, true, context);
        }
    }
}
