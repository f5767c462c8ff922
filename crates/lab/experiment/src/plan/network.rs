//! The network of a run, and how faults of connections are made in it.

use serde::Serialize;

use super::{Connection, FaultKind, NetworkFault, Plan};

/// In which network a run happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// That of the machine.
    #[default]
    Machine,
    /// A network namespace, of which the loopback is all there is: rules of the kernel may
    /// break what passes in it.
    Own,
}

impl Network {
    /// Whether it is the machine's.
    pub fn is_of_the_machine(&self) -> bool {
        *self == Self::Machine
    }
}

/// How faults of a connection are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultMechanism {
    /// By rules of the kernel, which drop packets and reset connections.
    Rules,
    /// By a proxy of the laboratory, which stands between the two.
    Proxy {
        /// Why the kernel does not do it: a fault of this word, on the same connection, is
        /// beyond its rules. `None`: the run is in the machine's network.
        needed_by: Option<&'static str>,
    },
}

impl NetworkFault {
    /// Whether a rule that drops packets, or resets connections, does all of it.
    fn is_a_rule(self) -> bool {
        match self {
            Self::Partition | Self::Lose(_) | Self::Reset => true,
            // What comes later has to wait somewhere.
            Self::Delay { .. } | Self::Throttle(_) => false,
        }
    }
}

impl Plan {
    /// How the faults of a connection are made, all in the same way.
    pub fn way(&self, connection: &Connection) -> FaultMechanism {
        if self.network.is_of_the_machine() {
            return FaultMechanism::Proxy { needed_by: None };
        }
        let faults = self.steps.iter().flat_map(|step| &step.faults);
        let mut beyond = faults.filter_map(|fault| match &fault.kind {
            FaultKind::Network {
                does, connections, ..
            } => (connections.contains(connection) && !does.is_a_rule()).then(|| fault.kind.word()),
            FaultKind::Process { .. } | FaultKind::Silence { .. } | FaultKind::Custom { .. } => {
                None
            }
        });
        match beyond.next() {
            None => FaultMechanism::Rules,
            word => FaultMechanism::Proxy { needed_by: word },
        }
    }
}
