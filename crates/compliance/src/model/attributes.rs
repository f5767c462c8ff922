//! What inventories hold and queries ask for: kinds of objects, their attributes by Rudder's
//! names, and what each attribute can be compared with.

use serde::{Deserialize, Serialize};

/// A kind of object that a query asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectType {
    /// The node itself.
    #[serde(rename = "node")]
    Node,
    /// Installed software.
    #[serde(rename = "software")]
    Software,
    /// Network interfaces.
    #[serde(rename = "networkInterfaceLogicalElement")]
    NetworkInterface,
    /// File systems.
    #[serde(rename = "fileSystemLogicalElement")]
    FileSystem,
    /// Processes.
    #[serde(rename = "process")]
    Process,
    /// Virtual machines that the node runs.
    #[serde(rename = "virtualMachineLogicalElement")]
    VirtualMachine,
    /// Variables of the environment.
    #[serde(rename = "environmentVariable")]
    Environment,
    /// Properties of the node.
    #[serde(rename = "serializedNodeProperty")]
    Property,
    /// The machine.
    #[serde(rename = "machine")]
    Machine,
    /// Processors.
    #[serde(rename = "processorPhysicalElement")]
    Processor,
    /// Memory modules.
    #[serde(rename = "memoryPhysicalElement")]
    Memory,
    /// Disks.
    #[serde(rename = "storagePhysicalElement")]
    Storage,
    /// The BIOS.
    #[serde(rename = "biosPhysicalElement")]
    Bios,
    /// Controllers.
    #[serde(rename = "controllerPhysicalElement")]
    Controller,
    /// Ports.
    #[serde(rename = "portPhysicalElement")]
    Port,
    /// Slots.
    #[serde(rename = "slotPhysicalElement")]
    Slot,
    /// Sound cards.
    #[serde(rename = "soundCardPhysicalElement")]
    SoundCard,
    /// Video cards.
    #[serde(rename = "videoCardPhysicalElement")]
    VideoCard,
    /// Membership of groups.
    #[serde(rename = "group")]
    Group,
}

/// How many kinds of objects there are.
pub const OBJECT_TYPES: usize = ObjectType::Group as usize + 1;

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

/// A comparator of a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Comparator {
    /// Has any value.
    Exists,
    /// Has no value.
    NotExists,
    /// Some value is equal.
    Eq,
    /// No value is equal.
    NotEq,
    /// Some value matches as a whole.
    Regex,
    /// No value matches as a whole.
    NotRegex,
    /// Some value is greater.
    Gt,
    /// Some value is less.
    Lt,
    /// Some value is greater or equal.
    #[serde(rename = "gteq")]
    GtEq,
    /// Some value is less or equal.
    #[serde(rename = "lteq")]
    LtEq,
    /// Some key is equal.
    HasKey,
    /// The value of the key has something at the JSONPath.
    JsonSelect,
}

impl Comparator {
    /// Rudder's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::NotExists => "notExists",
            Self::Eq => "eq",
            Self::NotEq => "notEq",
            Self::Regex => "regex",
            Self::NotRegex => "notRegex",
            Self::Gt => "gt",
            Self::Lt => "lt",
            Self::GtEq => "gteq",
            Self::LtEq => "lteq",
            Self::HasKey => "hasKey",
            Self::JsonSelect => "jsonSelect",
        }
    }
}

use Comparator as C;

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

use AttributeType as T;

/// An attribute: Rudder's name for it, and what its values are.
pub type Attribute = (&'static str, AttributeType);

impl ObjectType {
    /// Rudder's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Software => "software",
            Self::NetworkInterface => "networkInterfaceLogicalElement",
            Self::FileSystem => "fileSystemLogicalElement",
            Self::Process => "process",
            Self::VirtualMachine => "virtualMachineLogicalElement",
            Self::Environment => "environmentVariable",
            Self::Property => "serializedNodeProperty",
            Self::Machine => "machine",
            Self::Processor => "processorPhysicalElement",
            Self::Memory => "memoryPhysicalElement",
            Self::Storage => "storagePhysicalElement",
            Self::Bios => "biosPhysicalElement",
            Self::Controller => "controllerPhysicalElement",
            Self::Port => "portPhysicalElement",
            Self::Slot => "slotPhysicalElement",
            Self::SoundCard => "soundCardPhysicalElement",
            Self::VideoCard => "videoCardPhysicalElement",
            Self::Group => "group",
        }
    }

    /// Its attributes. Those of elements of an inventory are the columns of their rows.
    pub fn attributes(self) -> &'static [Attribute] {
        match self {
            Self::Node => NODE,
            Self::Software => SOFTWARE,
            Self::NetworkInterface => NETWORK,
            Self::FileSystem => FILE_SYSTEM,
            Self::Process => PROCESS,
            Self::VirtualMachine => VIRTUAL_MACHINE,
            Self::Environment => &[("name", T::Text), ("value", T::Text)],
            Self::Property => &[("name.value", T::Property)],
            Self::Machine => MACHINE,
            Self::Processor => PROCESSOR,
            Self::Memory => MEMORY,
            Self::Storage => STORAGE,
            Self::Bios => BIOS,
            Self::Controller => CONTROLLER,
            Self::Port => PORT,
            Self::Slot => SLOT,
            Self::SoundCard => SOUND_CARD,
            Self::VideoCard => VIDEO_CARD,
            Self::Group => &[("nodeGroupId", T::Group)],
        }
    }

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

const NODE: &[Attribute] = &[
    ("OS", T::Choice),
    ("nodeId", T::Text),
    ("nodeHostname", T::Text),
    ("osName", T::Choice),
    ("osFullName", T::OrderedText),
    ("osVersion", T::OrderedText),
    ("osServicePack", T::OrderedText),
    ("osKernelVersion", T::OrderedText),
    ("osArchitectureType", T::Text),
    ("state", T::Choice),
    ("ram", T::Memory),
    ("swap", T::Memory),
    ("agentName", T::Agent),
    ("agentVersion", T::Text),
    ("localAccountName", T::Text),
    ("ipHostNumber", T::Address),
    ("localAdministratorAccountName", T::Text),
    ("inventoryDate", T::Date),
    ("policyServerId", T::Text),
    ("instanceId", T::Text),
];
const SOFTWARE: &[Attribute] = &[
    ("cn", T::Text),
    ("softwareVersion", T::Text),
    ("editor", T::Text),
    ("licenseExpirationDate", T::Date),
    ("licenseName", T::Text),
    ("licenseProductId", T::Text),
    ("licenseProductKey", T::Text),
    ("sourceName", T::Text),
    ("sourceVersion", T::Text),
];
const NETWORK: &[Attribute] = &[
    ("description", T::Text),
    ("networkInterface", T::Text),
    ("ipHostNumber", T::Text),
    ("networkInterfaceDhcpServer", T::Text),
    ("networkInterfaceGateway", T::Text),
    ("networkInterfaceMask", T::Text),
    ("networkSubnet", T::Text),
    ("networkInterfaceMacAddress", T::Text),
    ("networkInterfaceType", T::Text),
    ("networkInterfaceTypeMib", T::Text),
];
const FILE_SYSTEM: &[Attribute] = &[
    ("description", T::Text),
    ("cn", T::Text),
    ("mountPoint", T::Text),
    ("fileCount", T::Number),
    ("fileSystemFreeSpace", T::Memory),
    ("fileSystemTotalSpace", T::Memory),
];
const PROCESS: &[Attribute] = &[
    ("pid", T::Text),
    ("name", T::Text),
    ("cpuUsage", T::Text),
    ("memory", T::Text),
    ("tty", T::Text),
    ("virtualMemory", T::Text),
    ("started", T::Text),
    ("user", T::Text),
];
const VIRTUAL_MACHINE: &[Attribute] = &[
    ("description", T::Text),
    ("vmType", T::Text),
    ("vmOwner", T::Text),
    ("vmStatus", T::Text),
    ("vmCpu", T::Number),
    ("vmMemory", T::Number),
    ("virtualMachineUuid", T::Text),
    ("subsystem", T::Text),
    ("vmName", T::Text),
];
const MACHINE: &[Attribute] = &[
    ("machineType", T::ChoiceAnyCase),
    ("vmType", T::ChoiceAnyCase),
    ("machineId", T::Text),
    ("cn", T::Text),
    ("description", T::Text),
    ("motherBoardUuid", T::Text),
    ("manufacturer", T::Text),
    ("componentSerialNumber", T::Text),
];
const PROCESSOR: &[Attribute] = &[
    ("cpuName", T::Text),
    ("description", T::Text),
    ("quantity", T::Number),
    ("model", T::Text),
    ("manufacturer", T::Text),
    ("cpuSpeed", T::Number),
    ("cpuStepping", T::Text),
    ("cpuFamily", T::Text),
    ("cpuFamilyName", T::Text),
    ("cpuThread", T::Text),
    ("cpuCore", T::Text),
];
const MEMORY: &[Attribute] = &[
    ("description", T::Text),
    ("quantity", T::Number),
    ("cn", T::Text),
    ("memoryCapacity", T::Memory),
    ("memoryCaption", T::Text),
    ("memorySpeed", T::Number),
    ("memorySlotNumber", T::Number),
    ("memoryType", T::Text),
    ("componentSerialNumber", T::Text),
];
const STORAGE: &[Attribute] = &[
    ("cn", T::Text),
    ("description", T::Text),
    ("model", T::Text),
    ("componentSerialNumber", T::Text),
    ("firmware", T::Text),
    ("quantity", T::Number),
    ("smeType", T::Text),
    ("manufacturer", T::Text),
    ("storageSize", T::Memory),
];
const BIOS: &[Attribute] = &[
    ("biosName", T::Text),
    ("description", T::Text),
    ("quantity", T::Number),
    ("softwareVersion", T::Text),
    ("releaseDate", T::Date),
    ("editor", T::Text),
    ("manufacturer", T::Text),
    ("componentSerialNumber", T::Text),
];
const CONTROLLER: &[Attribute] = &[
    ("controllerName", T::Text),
    ("description", T::Text),
    ("smeType", T::Text),
    ("manufacturer", T::Text),
    ("quantity", T::Number),
];
const PORT: &[Attribute] = &[
    ("portName", T::Text),
    ("description", T::Text),
    ("smeType", T::Text),
    ("quantity", T::Number),
];
const SLOT: &[Attribute] = &[
    ("description", T::Text),
    ("quantity", T::Number),
    ("status", T::Text),
    ("slotName", T::Text),
];
const SOUND_CARD: &[Attribute] = &[
    ("description", T::Text),
    ("quantity", T::Number),
    ("soundCardName", T::Text),
];
const VIDEO_CARD: &[Attribute] = &[
    ("description", T::Text),
    ("quantity", T::Number),
    ("videoCardName", T::Text),
    ("videoChipset", T::Text),
    ("videoResolution", T::Text),
    ("memoryCapacity", T::Memory),
];
