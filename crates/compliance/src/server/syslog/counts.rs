//! What became of messages.

use std::sync::OnceLock;

use telemetry::prometheus::{Kind, Page};

use super::super::metrics::{Count, expose};

/// Counts of messages of syslog.
#[derive(Debug, Default)]
pub(in super::super) struct SyslogCounts {
    /// Reports that are in a run.
    pub(super) taken: Count,
    /// Messages that are no report, or a broken one.
    pub(super) invalid: Count,
    /// Reports of nodes that are not set to report so.
    pub(super) refused: Count,
    /// Reports for which there was no room.
    pub(super) dropped: Count,
    /// Reports whose run could not be kept.
    pub(super) lost: Count,
    /// Streams that were closed: they could not be read on, or were too many.
    pub(super) closed: Count,
    /// The socket of datagrams, once there is one.
    socket: OnceLock<Socket>,
}

/// A socket of datagrams.
#[derive(Debug)]
struct Socket {
    /// The kernel's number of it.
    inode: Option<u64>,
    /// Bytes that may wait in it.
    buffer: usize,
}

impl SyslogCounts {
    /// The socket of datagrams has this number, and so many bytes may wait in it.
    pub(super) fn listens(&self, inode: Option<u64>, buffer: usize) {
        // There is one listener in a server.
        let _ = self.socket.set(Socket { inode, buffer });
    }

    /// Writes all of it, if anything listens.
    pub(in super::super) fn write_metrics(&self, page: &mut Page) {
        let Some(Socket { inode, buffer }) = self.socket.get() else {
            return;
        };
        page.family(
            Kind::Counter,
            "compliance_syslog_messages_total",
            "Messages of syslog by what became of them; those that are lost were ok before.",
            "status",
            [
                ("ok", &self.taken),
                ("invalid", &self.invalid),
                ("refused", &self.refused),
                ("dropped", &self.dropped),
                ("lost", &self.lost),
            ],
        );
        expose! { page;
            counter "compliance_syslog_streams_closed_total" &self.closed,
                "Streams that could not be read on, or were too many.";
            counter "compliance_syslog_kernel_drops_total" kernel_drops(*inode),
                "Datagrams that the kernel dropped, as they came faster than they were taken.";
            gauge "compliance_syslog_receive_buffer_bytes" buffer,
                "Bytes of datagrams that may wait to be taken.";
        }
    }
}

/// Datagrams that the kernel dropped of a socket since it was opened.
fn kernel_drops(inode: Option<u64>) -> u64 {
    let all = measure::udp_drops();
    let mine = all.iter().filter(|((one, _), _)| Some(*one) == inode);
    mine.map(|(_, dropped)| dropped).sum()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use telemetry::prometheus::Page;

    use super::super::Sockets;
    use super::SyslogCounts;

    fn told(counts: &SyslogCounts, name: &str) -> Option<u64> {
        let mut page = Page::new();
        counts.write_metrics(&mut page);
        let text = page.into_text();
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map(|value| value.parse().unwrap())
    }

    const DROPS: &str = "compliance_syslog_kernel_drops_total";
    const BUFFER: &str = "compliance_syslog_receive_buffer_bytes";
    const ASKED: usize = 64 << 10;

    #[tokio::test]
    async fn what_the_kernel_dropped_is_counted() {
        let address = ([127, 0, 0, 1], 0).into();
        let sockets = Sockets::bind(address, ASKED).await.unwrap();
        let counts = SyslogCounts::default();
        assert_eq!(told(&counts, DROPS), None, "nothing listens");
        // Less than any machine's bound, so it is given.
        assert_eq!(sockets.buffer.given, ASKED);
        counts.listens(sockets.inode(), sockets.buffer.given);
        assert_eq!(told(&counts, BUFFER), Some(ASKED as u64));
        assert_eq!(told(&counts, DROPS), Some(0));
        // More than the buffer holds: nobody reads it.
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..400 {
            sender.send_to(&[b'x'; 32 << 10], sockets.address).unwrap();
        }
        assert!(told(&counts, DROPS) > Some(0));
    }

    #[tokio::test]
    async fn a_larger_buffer_holds_more_until_it_is_taken() {
        let mut held = Vec::new();
        for asked in [16 << 10, 128 << 10] {
            let address = ([127, 0, 0, 1], 0).into();
            let sockets = Sockets::bind(address, asked).await.unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..2_000 {
                sender.send_to(&[b'x'; 200], sockets.address).unwrap();
            }
            sockets.udp.readable().await.unwrap();
            let taken = std::iter::from_fn(|| sockets.udp.try_recv(&mut [0; 400]).ok());
            held.push(taken.count());
        }
        assert!(held[0] * 3 < held[1], "{held:?}");
    }
}
