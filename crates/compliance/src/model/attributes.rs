//! What inventories hold and queries ask for: kinds of objects, their attributes by Rudder's
//! names, and what each attribute can be compared with.

use serde::{Deserialize, Serialize};

/// An attribute: Rudder's name for it, and what its values are.
pub type Attribute = (&'static str, AttributeType);

macro_rules! object_types {
    ($($(#[$doc:meta])* $kind:ident $word:tt { $($name:literal: $values:ident,)* })*) => {
        /// A kind of object that a query asks about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ObjectType {
            $($(#[$doc])* #[serde(rename = $word)] $kind,)*
        }

        impl ObjectType {
            /// All of them, each at the place of its number.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Rudder's word for it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// Its attributes. Those of elements of an inventory are the columns of their rows.
            pub fn attributes(self) -> &'static [Attribute] {
                match self { $(Self::$kind => &[$(($name, AttributeType::$values)),*],)* }
            }
        }
    };
}

object_types! {
    /// The node itself.
    Node "node" {
        "OS": Choice, "nodeId": Text, "nodeHostname": Text, "osName": Choice,
        "osFullName": OrderedText, "osVersion": OrderedText, "osServicePack": OrderedText,
        "osKernelVersion": OrderedText, "osArchitectureType": Text, "state": Choice, "ram": Memory,
        "swap": Memory, "agentName": Agent, "agentVersion": Text, "localAccountName": Text,
        "ipHostNumber": Address, "localAdministratorAccountName": Text, "inventoryDate": Date,
        "policyServerId": Text, "instanceId": Text,
    }
    /// Installed software.
    Software "software" {
        "cn": Text, "softwareVersion": Text, "editor": Text, "licenseExpirationDate": Date,
        "licenseName": Text, "licenseProductId": Text, "licenseProductKey": Text,
        "sourceName": Text, "sourceVersion": Text,
    }
    /// Network interfaces.
    NetworkInterface "networkInterfaceLogicalElement" {
        "description": Text, "networkInterface": Text, "ipHostNumber": Text,
        "networkInterfaceDhcpServer": Text, "networkInterfaceGateway": Text,
        "networkInterfaceMask": Text, "networkSubnet": Text, "networkInterfaceMacAddress": Text,
        "networkInterfaceType": Text, "networkInterfaceTypeMib": Text,
    }
    /// File systems.
    FileSystem "fileSystemLogicalElement" {
        "description": Text, "cn": Text, "mountPoint": Text, "fileCount": Number,
        "fileSystemFreeSpace": Memory, "fileSystemTotalSpace": Memory,
    }
    /// Processes.
    Process "process" {
        "pid": Text, "name": Text, "cpuUsage": Text, "memory": Text, "tty": Text,
        "virtualMemory": Text, "started": Text, "user": Text,
    }
    /// Virtual machines that the node runs.
    VirtualMachine "virtualMachineLogicalElement" {
        "description": Text, "vmType": Text, "vmOwner": Text, "vmStatus": Text, "vmCpu": Number,
        "vmMemory": Number, "virtualMachineUuid": Text, "subsystem": Text, "vmName": Text,
    }
    /// Variables of the environment.
    Environment "environmentVariable" {
        "name": Text, "value": Text,
    }
    /// Properties of the node.
    Property "serializedNodeProperty" {
        "name.value": Property,
    }
    /// The machine.
    Machine "machine" {
        "machineType": ChoiceAnyCase, "vmType": ChoiceAnyCase, "machineId": Text, "cn": Text,
        "description": Text, "motherBoardUuid": Text, "manufacturer": Text,
        "componentSerialNumber": Text,
    }
    /// Processors.
    Processor "processorPhysicalElement" {
        "cpuName": Text, "description": Text, "quantity": Number, "model": Text,
        "manufacturer": Text, "cpuSpeed": Number, "cpuStepping": Text, "cpuFamily": Text,
        "cpuFamilyName": Text, "cpuThread": Text, "cpuCore": Text,
    }
    /// Memory modules.
    Memory "memoryPhysicalElement" {
        "description": Text, "quantity": Number, "cn": Text, "memoryCapacity": Memory,
        "memoryCaption": Text, "memorySpeed": Number, "memorySlotNumber": Number,
        "memoryType": Text, "componentSerialNumber": Text,
    }
    /// Disks.
    Storage "storagePhysicalElement" {
        "cn": Text, "description": Text, "model": Text, "componentSerialNumber": Text,
        "firmware": Text, "quantity": Number, "smeType": Text, "manufacturer": Text,
        "storageSize": Memory,
    }
    /// The BIOS.
    Bios "biosPhysicalElement" {
        "biosName": Text, "description": Text, "quantity": Number, "softwareVersion": Text,
        "releaseDate": Date, "editor": Text, "manufacturer": Text, "componentSerialNumber": Text,
    }
    /// Controllers.
    Controller "controllerPhysicalElement" {
        "controllerName": Text, "description": Text, "smeType": Text, "manufacturer": Text,
        "quantity": Number,
    }
    /// Ports.
    Port "portPhysicalElement" {
        "portName": Text, "description": Text, "smeType": Text, "quantity": Number,
    }
    /// Slots.
    Slot "slotPhysicalElement" {
        "description": Text, "quantity": Number, "status": Text, "slotName": Text,
    }
    /// Sound cards.
    SoundCard "soundCardPhysicalElement" {
        "description": Text, "quantity": Number, "soundCardName": Text,
    }
    /// Video cards.
    VideoCard "videoCardPhysicalElement" {
        "description": Text, "quantity": Number, "videoCardName": Text, "videoChipset": Text,
        "videoResolution": Text, "memoryCapacity": Memory,
    }
    /// Membership of groups.
    Group "group" {
        "nodeGroupId": Group,
    }
}

/// How many kinds of objects there are.
pub const OBJECT_TYPES: usize = ObjectType::ALL.len();

/// What the values of an attribute are, which decides how they compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeType {
    /// Text.
    Text,
    /// Text that is ordered as text.
    OrderedText,
    /// A whole number.
    Number,
    /// A size in bytes; a query may write `300 MB`, by factors of 1,024.
    Memory,
    /// A date, or a date and time.
    Date,
    /// One word of a few.
    Choice,
    /// One word of a few, in any case of letters.
    ChoiceAnyCase,
    /// Addresses; equality takes a network such as `10.0.0.0/8` too.
    Address,
    /// The agent; `cfengine` stands for every agent that is CFEngine.
    Agent,
    /// `key=value` of the environment.
    KeyValue,
    /// `key=value` of properties, with JSONPath.
    Property,
    /// A group that the node belongs to.
    Group,
}

words! {
    /// A comparator of a criterion.
    Comparator {
        /// Has any value.
        Exists "exists",
        /// Has no value.
        NotExists "notExists",
        /// Some value is equal.
        Eq "eq",
        /// No value is equal.
        NotEq "notEq",
        /// Some value matches as a whole.
        Regex "regex",
        /// No value matches as a whole.
        NotRegex "notRegex",
        /// Some value is greater.
        Gt "gt",
        /// Some value is less.
        Lt "lt",
        /// Some value is greater or equal.
        GtEq "gteq",
        /// Some value is less or equal.
        LtEq "lteq",
        /// Some key is equal.
        HasKey "hasKey",
        /// The value of the key has something at the JSONPath.
        JsonSelect "jsonSelect",
    }
}

type C = Comparator;

/// What attributes can be asked, in an order in which each kind but dates is asked a run of it.
const RUNS: &[Comparator] = &[
    C::JsonSelect,
    C::HasKey,
    C::Exists,
    C::NotExists,
    C::Eq,
    C::NotEq,
    C::Regex,
    C::NotRegex,
    C::Lt,
    C::LtEq,
    C::Gt,
    C::GtEq,
];
const DATE: &[Comparator] = &[
    C::Exists,
    C::NotExists,
    C::Eq,
    C::NotEq,
    C::Lt,
    C::LtEq,
    C::Gt,
    C::GtEq,
];

impl AttributeType {
    /// What such an attribute can be asked.
    pub fn comparators(self) -> &'static [Comparator] {
        match self {
            Self::Text | Self::Address => &RUNS[2..8],
            Self::OrderedText | Self::Number | Self::Memory => &RUNS[2..],
            Self::Date => DATE,
            Self::Choice | Self::ChoiceAnyCase | Self::Agent => &RUNS[4..6],
            Self::KeyValue => &RUNS[1..8],
            Self::Property => &RUNS[..8],
            Self::Group => &RUNS[4..5],
        }
    }
}

impl ObjectType {
    /// Is it a kind of element that inventories list?
    pub fn is_element(self) -> bool {
        !matches!(self, Self::Node | Self::Property | Self::Group)
    }

    /// The place of an attribute among [`ObjectType::attributes`].
    pub fn column(self, attribute: &str) -> Option<usize> {
        let mut all = self.attributes().iter();
        all.position(|(name, _)| *name == attribute)
    }
}
