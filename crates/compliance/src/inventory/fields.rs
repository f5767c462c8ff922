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

/// Element below `CONTENT`, kind of element, and for each field its attribute.
pub(super) type Mapping = (
    &'static str,
    O,
    &'static [(&'static str, &'static str, Unit)],
);

macro_rules! mappings {
    (@unit) => { Unit::Text };
    (@unit $unit:ident) => { Unit::$unit };
    ($($name:ident $kind:ident { $($field:ident: $attribute:ident $(as $unit:ident)?,)* })*) => {
        &[$((
            stringify!($name),
            O::$kind,
            &[$((stringify!($field), stringify!($attribute), mappings!(@unit $($unit)?))),*],
        )),*]
    };
}

pub(super) const MAPPINGS: &[Mapping] = mappings! {
    SOFTWARES Software {
        NAME: cn, VERSION: softwareVersion, PUBLISHER: editor, SOURCE_NAME: sourceName,
        SOURCE_VERSION: sourceVersion,
    }
    NETWORKS NetworkInterface {
        DESCRIPTION: networkInterface, TYPE: networkInterface, IPADDRESS: ipHostNumber,
        IPADDRESS6: ipHostNumber, IPMASK: networkInterfaceMask, IPMASK6: networkInterfaceMask,
        IPSUBNET: networkSubnet, IPSUBNET6: networkSubnet, IPGATEWAY: networkInterfaceGateway,
        IPGATEWAY6: networkInterfaceGateway, IPDHCP: networkInterfaceDhcpServer,
        MACADDR: networkInterfaceMacAddress, TYPE: networkInterfaceType,
        TYPEMIB: networkInterfaceTypeMib,
    }
    DRIVES FileSystem {
        FILESYSTEM: cn, VOLUMN: description, LETTER: mountPoint, TYPE: mountPoint,
        VOLUMN: mountPoint, NUMFILES: fileCount, FREE: fileSystemFreeSpace as Megabytes,
        TOTAL: fileSystemTotalSpace as Megabytes,
    }
    PROCESSES Process {
        PID: pid, CMD: name, CPUUSAGE: cpuUsage, MEM: memory, TTY: tty,
        VIRTUALMEMORY: virtualMemory, STARTED: started, USER: user,
    }
    ENVS Environment {
        KEY: name, VAL: value,
    }
    VIRTUALMACHINES VirtualMachine {
        NAME: vmName, VMTYPE: vmType, OWNER: vmOwner, STATUS: vmStatus, VCPU: vmCpu,
        MEMORY: vmMemory, UUID: virtualMachineUuid, SUBSYSTEM: subsystem,
    }
    CPUS Processor {
        NAME: cpuName, MODEL: model, MANUFACTURER: manufacturer, SPEED: cpuSpeed,
        STEPPING: cpuStepping, FAMILYNUMBER: cpuFamily, FAMILYNAME: cpuFamilyName,
        THREAD: cpuThread, CORE: cpuCore,
    }
    MEMORIES Memory {
        CAPTION: memoryCaption, DESCRIPTION: description, CAPACITY: memoryCapacity as Megabytes,
        SPEED: memorySpeed, NUMSLOTS: memorySlotNumber, TYPE: memoryType,
        SERIALNUMBER: componentSerialNumber,
    }
    STORAGES Storage {
        NAME: cn, DESCRIPTION: description, MODEL: model, SERIALNUMBER: componentSerialNumber,
        FIRMWARE: firmware, TYPE: smeType, MANUFACTURER: manufacturer,
        DISKSIZE: storageSize as Megabytes,
    }
    BIOS Bios {
        SMODEL: biosName, BVERSION: softwareVersion, BDATE: releaseDate as Date,
        BMANUFACTURER: editor, SMANUFACTURER: manufacturer, SSN: componentSerialNumber,
    }
    CONTROLLERS Controller {
        NAME: controllerName, DESCRIPTION: description, TYPE: smeType, MANUFACTURER: manufacturer,
    }
    PORTS Port {
        NAME: portName, DESCRIPTION: description, TYPE: smeType,
    }
    SLOTS Slot {
        NAME: slotName, DESIGNATION: slotName, DESCRIPTION: description, STATUS: status,
    }
    SOUNDS SoundCard {
        NAME: soundCardName, MANUFACTURER: soundCardName, DESCRIPTION: description,
    }
    VIDEOS VideoCard {
        NAME: videoCardName, RESOLUTION: videoCardName, DESCRIPTION: description,
        CHIPSET: videoChipset, RESOLUTION: videoResolution, MEMORY: memoryCapacity as Megabytes,
    }
};
