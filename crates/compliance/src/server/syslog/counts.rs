//! What became of messages.

use std::sync::OnceLock;

use telemetry::prometheus::{Kind, Page};

use super::super::metrics::Count;

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
    /// The kernel's number of the socket of datagrams, once there is one.
    inode: OnceLock<Option<u64>>,
}

impl SyslogCounts {
    /// The socket of datagrams is this one.
    pub(super) fn listens(&self, inode: Option<u64>) {
        // There is one listener in a server.
        let _ = self.inode.set(inode);
    }

    /// Tells all of it, if anything listens.
    pub(in super::super) fn tell(&self, page: &mut Page) {
        let Some(inode) = self.inode.get() else {
            return;
        };
        let messages = [
            ("ok", &self.taken),
            ("invalid", &self.invalid),
            ("refused", &self.refused),
            ("dropped", &self.dropped),
            ("lost", &self.lost),
        ];
        page.family(
            Kind::Counter,
            "compliance_syslog_messages_total",
            "Messages of syslog by what became of them; those that are lost were ok before.",
            "status",
            messages.map(|(status, count)| (status, count.get())),
        )
        .counter(
            "compliance_syslog_streams_closed_total",
            "Streams that could not be read on, or were too many.",
            self.closed.get(),
        )
        .counter(
            "compliance_syslog_kernel_drops_total",
            "Datagrams that the kernel dropped, as they came faster than they were taken.",
            kernel_drops(*inode),
        );
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

    fn told(counts: &SyslogCounts) -> Option<u64> {
        let mut page = Page::new();
        counts.tell(&mut page);
        let text = page.into_text();
        let name = "compliance_syslog_kernel_drops_total ";
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map(|value| value.parse().unwrap())
    }

    #[tokio::test]
    async fn what_the_kernel_dropped_is_counted() {
        let sockets = Sockets::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let counts = SyslogCounts::default();
        assert_eq!(told(&counts), None, "nothing listens");
        counts.listens(sockets.inode());
        assert_eq!(told(&counts), Some(0));
        // More than any buffer holds: nobody reads it.
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..4_000 {
            sender.send_to(&[b'x'; 32 << 10], sockets.address).unwrap();
        }
        assert!(told(&counts) > Some(0));
    }
}
