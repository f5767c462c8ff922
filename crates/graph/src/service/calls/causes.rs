//! Why a call got no answer, in the words of metrics and spans.

use traces::failure;

/// The word for what a socket says.
pub(super) fn cause_word(word: &'static str) -> &'static str {
    match word {
        "closed early" | "aborted" => failure::RESET,
        "host unreachable" | "network unreachable" | "network down" => "unreachable",
        "no ports left" => "no-ports",
        "no descriptors left" => failure::NO_DESCRIPTORS,
        "no memory left" => "no-memory",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use wire::socket;

    use super::*;

    #[test]
    fn what_sockets_say_is_counted_by_a_word_of_its_own() {
        for errno in [
            Errno::CONNREFUSED,
            Errno::PIPE,
            Errno::TIMEDOUT,
            Errno::HOSTUNREACH,
            Errno::ADDRNOTAVAIL,
            Errno::MFILE,
            Errno::NOBUFS,
        ] {
            let word = cause_word(socket::cause(errno));
            assert!(traces::failure::ALL.contains(&word), "{word}");
        }
    }
}
