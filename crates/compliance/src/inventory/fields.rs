//! Which element of an inventory is which attribute.

use crate::model::attributes::ObjectType as O;

/// How a text becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// As it is.
    Text,
    /// A number of MB, kept in bytes.
    Megabytes,
    /// `MM/DD/YYYY`, kept as `YYYY-MM-DD`; another form as it is.
    Date,
}

use Unit::{Date, Megabytes, Text};

/// Element below `CONTENT`, kind of element, and for each field its attribute.
pub(super) type Mapping = (
    &'static str,
    O,
    &'static [(&'static str, &'static str, Unit)],
);

pub(super) const MAPPINGS: &[Mapping] = &[
    (
        "SOFTWARES",
        O::Software,
        &[
            ("NAME", "cn", Text),
            ("VERSION", "softwareVersion", Text),
            ("PUBLISHER", "editor", Text),
            ("SOURCE_NAME", "sourceName", Text),
            ("SOURCE_VERSION", "sourceVersion", Text),
        ],
    ),
    (
        "NETWORKS",
        O::NetworkInterface,
        &[
            ("DESCRIPTION", "networkInterface", Text),
            ("TYPE", "networkInterface", Text),
            ("IPADDRESS", "ipHostNumber", Text),
            ("IPADDRESS6", "ipHostNumber", Text),
            ("IPMASK", "networkInterfaceMask", Text),
            ("IPMASK6", "networkInterfaceMask", Text),
            ("IPSUBNET", "networkSubnet", Text),
            ("IPSUBNET6", "networkSubnet", Text),
            ("IPGATEWAY", "networkInterfaceGateway", Text),
            ("IPGATEWAY6", "networkInterfaceGateway", Text),
            ("IPDHCP", "networkInterfaceDhcpServer", Text),
            ("MACADDR", "networkInterfaceMacAddress", Text),
            ("TYPE", "networkInterfaceType", Text),
            ("TYPEMIB", "networkInterfaceTypeMib", Text),
        ],
    ),
    (
        "DRIVES",
        O::FileSystem,
        &[
            ("FILESYSTEM", "cn", Text),
            ("VOLUMN", "description", Text),
            ("LETTER", "mountPoint", Text),
            ("TYPE", "mountPoint", Text),
            ("VOLUMN", "mountPoint", Text),
            ("NUMFILES", "fileCount", Text),
            ("FREE", "fileSystemFreeSpace", Megabytes),
            ("TOTAL", "fileSystemTotalSpace", Megabytes),
        ],
    ),
    (
        "PROCESSES",
        O::Process,
        &[
            ("PID", "pid", Text),
            ("CMD", "name", Text),
            ("CPUUSAGE", "cpuUsage", Text),
            ("MEM", "memory", Text),
            ("TTY", "tty", Text),
            ("VIRTUALMEMORY", "virtualMemory", Text),
            ("STARTED", "started", Text),
            ("USER", "user", Text),
        ],
    ),
    (
        "ENVS",
        O::Environment,
        &[("KEY", "name", Text), ("VAL", "value", Text)],
    ),
    (
        "VIRTUALMACHINES",
        O::VirtualMachine,
        &[
            ("NAME", "vmName", Text),
            ("VMTYPE", "vmType", Text),
            ("OWNER", "vmOwner", Text),
            ("STATUS", "vmStatus", Text),
            ("VCPU", "vmCpu", Text),
            ("MEMORY", "vmMemory", Text),
            ("UUID", "virtualMachineUuid", Text),
            ("SUBSYSTEM", "subsystem", Text),
        ],
    ),
    (
        "CPUS",
        O::Processor,
        &[
            ("NAME", "cpuName", Text),
            ("MODEL", "model", Text),
            ("MANUFACTURER", "manufacturer", Text),
            ("SPEED", "cpuSpeed", Text),
            ("STEPPING", "cpuStepping", Text),
            ("FAMILYNUMBER", "cpuFamily", Text),
            ("FAMILYNAME", "cpuFamilyName", Text),
            ("THREAD", "cpuThread", Text),
            ("CORE", "cpuCore", Text),
        ],
    ),
    (
        "MEMORIES",
        O::Memory,
        &[
            ("CAPTION", "memoryCaption", Text),
            ("DESCRIPTION", "description", Text),
            ("CAPACITY", "memoryCapacity", Megabytes),
            ("SPEED", "memorySpeed", Text),
            ("NUMSLOTS", "memorySlotNumber", Text),
            ("TYPE", "memoryType", Text),
            ("SERIALNUMBER", "componentSerialNumber", Text),
        ],
    ),
    (
        "STORAGES",
        O::Storage,
        &[
            ("NAME", "cn", Text),
            ("DESCRIPTION", "description", Text),
            ("MODEL", "model", Text),
            ("SERIALNUMBER", "componentSerialNumber", Text),
            ("FIRMWARE", "firmware", Text),
            ("TYPE", "smeType", Text),
            ("MANUFACTURER", "manufacturer", Text),
            ("DISKSIZE", "storageSize", Megabytes),
        ],
    ),
    (
        "BIOS",
        O::Bios,
        &[
            ("SMODEL", "biosName", Text),
            ("BVERSION", "softwareVersion", Text),
            ("BDATE", "releaseDate", Date),
            ("BMANUFACTURER", "editor", Text),
            ("SMANUFACTURER", "manufacturer", Text),
            ("SSN", "componentSerialNumber", Text),
        ],
    ),
    (
        "CONTROLLERS",
        O::Controller,
        &[
            ("NAME", "controllerName", Text),
            ("DESCRIPTION", "description", Text),
            ("TYPE", "smeType", Text),
            ("MANUFACTURER", "manufacturer", Text),
        ],
    ),
    (
        "PORTS",
        O::Port,
        &[
            ("NAME", "portName", Text),
            ("DESCRIPTION", "description", Text),
            ("TYPE", "smeType", Text),
        ],
    ),
    (
        "SLOTS",
        O::Slot,
        &[
            ("NAME", "slotName", Text),
            ("DESIGNATION", "slotName", Text),
            ("DESCRIPTION", "description", Text),
            ("STATUS", "status", Text),
        ],
    ),
    (
        "SOUNDS",
        O::SoundCard,
        &[
            ("NAME", "soundCardName", Text),
            ("MANUFACTURER", "soundCardName", Text),
            ("DESCRIPTION", "description", Text),
        ],
    ),
    (
        "VIDEOS",
        O::VideoCard,
        &[
            ("NAME", "videoCardName", Text),
            ("RESOLUTION", "videoCardName", Text),
            ("DESCRIPTION", "description", Text),
            ("CHIPSET", "videoChipset", Text),
            ("RESOLUTION", "videoResolution", Text),
            ("MEMORY", "memoryCapacity", Megabytes),
        ],
    ),
];
