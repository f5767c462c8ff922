//! The copies that a probe picks for a fault.

use std::time::Duration;

use lab_store::ProbeSample;
use tokio::time::Instant;
use units::{show_count, show_seconds};

use super::Probes;
use crate::processes::{Addresses, Copy};
use crate::standstill;

impl Probes<'_> {
    /// Waits until a probe picks one of these copies that is up and free; gives all that it picks.
    ///
    /// A probe of every copy picks those whose newest answer, of the process that runs now, was
    /// 1 or true. One that asks once picks the copy whose name or address it was answered.
    ///
    /// # Errors
    /// When it picks none within that time: which of them answered what.
    pub(crate) async fn pick<'c>(
        &self,
        probe: &str,
        (system, copies): (&str, &'c [Copy]),
        addresses: &Addresses,
        within: Duration,
        is_free: fn(&Copy) -> bool,
    ) -> Result<Vec<&'c Copy>, String> {
        let began = Instant::now();
        let wait = async {
            loop {
                let able = copies.iter().filter(|copy| copy.is_up() && is_free(copy));
                let picked: Vec<&Copy> = able
                    .filter(|copy| self.picks(probe, copy, addresses.ports(system, copy.index)))
                    .collect();
                if !picked.is_empty() {
                    return picked;
                }
                self.next_try().await;
            }
        };
        standstill::within(within, wait).await.map_err(|_| {
            let waited = show_seconds(began.elapsed().as_secs_f64());
            format!(
                "{probe} picked no copy that is up within {waited}: {}; give it longer by `within`, \
                 or wait until there is one in a step before",
                self.answers(probe)
            )
        })
    }

    fn picks(&self, probe: &str, copy: &Copy, ports: &[u16]) -> bool {
        self.of(probe).any(|asked| {
            let newest = asked.newest.borrow();
            let Some(newest) = newest.as_ref().filter(|newest| newest.sample.is_ok()) else {
                return false;
            };
            match asked.copy {
                // What the process before answered says nothing of this one.
                Some(own) => {
                    own.index == copy.index
                        && newest.start == copy.start()
                        && newest.sample.value == Some(1.0)
                }
                None => names(&newest.sample.text, &copy.name, ports),
            }
        })
    }

    /// What was answered last, copy by copy.
    fn answers(&self, probe: &str) -> String {
        let answers = self.of(probe).map(|asked| {
            let said = match &*asked.newest.borrow() {
                Some(newest) => describe(&newest.sample),
                None => "was not asked to the end yet".to_owned(),
            };
            match asked.of.as_str() {
                "" => format!("it {said}"),
                of => format!("{of} {said}"),
            }
        });
        answers.collect::<Vec<String>>().join(", ")
    }
}

fn describe(sample: &ProbeSample) -> String {
    match (sample.is_ok(), sample.value) {
        (false, _) => format!("failed ({})", sample.error),
        (true, Some(value)) => format!("answered {}", show_count(value)),
        (true, None) if sample.text.is_empty() => "answered nothing".to_owned(),
        (true, None) => format!("answered {:?}", sample.text),
    }
}

/// Whether a text is the name of a copy, or an address with one of its ports on this machine:
/// `etcd.0`, `127.0.0.1:2379`, `http://localhost:2379/`.
fn names(text: &str, name: &str, ports: &[u16]) -> bool {
    if text == name {
        return true;
    }
    let bare = text.split_once("://").map_or(text, |(_, bare)| bare);
    let host = bare.split('/').next().unwrap_or_default();
    let Some((host, port)) = host.rsplit_once(':') else {
        return false;
    };
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host);
    is_here && port.parse().is_ok_and(|port: u16| ports.contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_an_address_names_a_copy() {
        let is = |text: &str| names(text, "etcd.0", &[2379, 2380]);
        for text in [
            "etcd.0",
            "127.0.0.1:2379",
            "http://localhost:2380/",
            "https://[::1]:2379/x",
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "",
            "etcd.1",
            "127.0.0.1:2381",
            "10.0.0.1:2379",
            "127.0.0.1",
            ":2379",
        ] {
            assert!(!is(text), "{text}");
        }
    }
}
