//! How well the services are shielded from each other and from others. Where a chain of
//! services ran has moved its median more than twofold, so it is told with every result.

use serde::Serialize;

use crate::topology::Topology;

/// How well services are isolated; each level is quieter than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// Some services run wherever the scheduler puts them.
    Free,
    /// Every service keeps to its processors, which others may use too (`cpus`).
    Pinned,
    /// Every service keeps to its processors, and the scheduler puts nobody else there
    /// (`isolcpus=` of the kernel's command line).
    Isolated,
}

impl IsolationLevel {
    /// That of a graph on a machine whose kernel isolates these processors, written as
    /// `1-3,5` (`/sys/devices/system/cpu/isolated`).
    pub fn of(topology: &Topology, isolated: Option<&str>) -> Self {
        let isolated = isolated.map(numbers).unwrap_or_default();
        let mut services = topology.services.iter().map(|one| &one.placement.cpus);
        if services.clone().any(Vec::is_empty) {
            Self::Free
        } else if services.all(|cpus| cpus.iter().all(|cpu| isolated.contains(cpu))) {
            Self::Isolated
        } else {
            Self::Pinned
        }
    }
}

/// The numbers of a list such as `1-3,5`; a text of another form has none.
fn numbers(list: &str) -> Vec<u32> {
    units::parse_cpus(list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(services: &[&str]) -> Topology {
        let mut text = String::new();
        for (place, cpus) in services.iter().enumerate() {
            text += &format!("[services.s{place}]\n");
            text += if place == 0 { "entry = true\n" } else { "" };
            if !cpus.is_empty() {
                text += &format!("cpus = \"{cpus}\"\n");
            }
            if place + 1 < services.len() {
                text += &format!("steps = [{{ call = \"s{}\" }}]\n", place + 1);
            }
        }
        crate::topology::of_text(&text)
    }

    #[test]
    fn the_least_shielded_service_decides() {
        for (cpus, isolated, expected) in [
            ("", None, IsolationLevel::Free),
            ("0", None, IsolationLevel::Pinned),
            ("0", Some(""), IsolationLevel::Pinned),
            ("1-2", Some("1-3,5"), IsolationLevel::Isolated),
            ("1,4", Some("1-3,5"), IsolationLevel::Pinned),
            ("5", Some("1-3,5"), IsolationLevel::Isolated),
        ] {
            assert_eq!(
                IsolationLevel::of(&graph(&[cpus]), isolated),
                expected,
                "{cpus}"
            );
        }
    }

    #[test]
    fn ranges_are_read() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert!(numbers("").is_empty());
        assert!(numbers("x-,y").is_empty());
    }
}
