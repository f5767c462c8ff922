//! What calls about nodes take and answer.

use super::super::groups::PROPERTY_LIST;
use super::super::schema::{Field, Schema, TEXT, may, object, objects};
use super::DECIDED;
use crate::model::property::PROPERTIES;

pub(super) static STATES: Schema = Schema::Word(&[
    "enabled",
    "initializing",
    "empty-policies",
    "ignored",
    "preparing-eol",
]);
pub(super) static MODES: Schema = Schema::Word(&["default", "audit", "enforce"]);
pub(super) static STANDINGS: Schema = Schema::Word(&["pending", "accepted", "refused", "unknown"]);
pub(super) static TEXTS: Schema = Schema::List(&TEXT, usize::MAX);

/// An element of an inventory: texts, numbers, and lists of addresses.
static ELEMENT: Schema = Schema::Map(&Schema::Any);
static ELEMENTS: Schema = Schema::List(&ELEMENT, usize::MAX);

static KINDS: Schema = Schema::Word(&["node", "relay", "root"]);

pub(super) static NODE: Schema = object! { "Node"
    needed "id": Schema::Identity;
    needed "hostname": TEXT;
    needed "status": STANDINGS;
    may "kind": KINDS;
    may "state": STATES;
    may "os": object! { "OperatingSystem"
        needed "type": TEXT, "the kernel";
        needed "name": TEXT;
        needed "version": TEXT;
        needed "fullName": TEXT;
        may "servicePack": TEXT;
        needed "kernelVersion": TEXT;
    };
    may "architectureDescription": TEXT;
    may "ram": Schema::Either(&[&Schema::Number(0, i64::MAX), &Schema::Any]), "bytes, or null";
    may "ipAddresses": TEXTS;
    may "policyServerId": TEXT, "root, or the relay that it is behind";
    may "policyMode": MODES;
    may "description": TEXT, "empty: nobody sets it";
    may "acceptanceDate": TEXT, "if it is accepted; not known of nodes of older servers";
    may "lastInventoryDate": TEXT;
    may "lastRunDate": TEXT, "when its last run started, if it had one";
    may "properties": PROPERTY_LIST;
    may "managementTechnology": Schema::List(&object! { "Agent"
        needed "name": TEXT;
        needed "version": TEXT;
        needed "capabilities": TEXTS, "what it is able to do";
        needed "nodeKind": KINDS;
    }, 1);
    may "timezone": object! { "TimeZone"
        needed "name": TEXT;
        needed "offset": TEXT, "from UTC, as +0200";
    }, "of its clock, if its inventory tells it";
    may "accounts": TEXTS, "if include asks for it, as all below";
    may "swap": Schema::Either(&[&Schema::Number(0, i64::MAX), &Schema::Any]), "bytes, or null";
    may "instanceId": TEXT, "of the server";
    may "managementTechnologyDetails": object! { "AgentDetails"
        needed "cfengineKeys": TEXTS, "its certificate";
        needed "cfengineUser": TEXT, "whom it runs as";
    };
    may "machine": ELEMENT;
    may "software": ELEMENTS;
    may "softwareUpdate": ELEMENTS, "what it could install";
    may "networkInterfaces": ELEMENTS;
    may "fileSystems": ELEMENTS;
    may "processes": ELEMENTS;
    may "virtualMachines": ELEMENTS;
    may "environmentVariables": ELEMENTS;
    may "processors": ELEMENTS;
    may "memories": ELEMENTS;
    may "storage": ELEMENTS;
    may "bios": ELEMENTS;
    may "controllers": ELEMENTS;
    may "ports": ELEMENTS;
    may "slots": ELEMENTS;
    may "sound": ELEMENTS;
    may "videos": ELEMENTS;
};
pub(super) static NODES: Schema = Schema::List(&NODE, usize::MAX);
pub(super) static NODE_STATUSES: Schema = objects! { "NodeStatus"
    needed "id": TEXT;
    needed "status": STANDINGS;
};
pub(super) static DECIDED_NODES: Schema = Schema::List(
    &object! { "DecidedNode"
        needed "id": Schema::Identity;
        needed "hostname": TEXT;
        needed "status": STANDINGS;
    },
    DECIDED,
);

pub(super) static DECISION: Schema = object! { "NodeDecision"
    needed "status": Schema::Word(&["accepted", "refused"]);
    may "nodeId": Schema::List(&Schema::Identity, DECIDED);
};
pub(super) static ONE_DECISION: Schema = object! { "OneNodeDecision"
    needed "status": Schema::Word(&["accepted", "refused"]);
};
pub(super) static CHANGE: Schema = object! { "NodeChange"
    may "properties": Schema::List(&object! { "PropertyChange"
        needed "name": Schema::PropertyName;
        needed "value": Schema::Any, "any JSON; null or an empty text removes it";
    }, PROPERTIES), "those that are left out stay";
    may "policyMode": MODES;
    may "state": STATES;
    may "kind": Schema::Word(&["node", "relay"]), "a relay serves the nodes behind it";
    may "policyServerId": Schema::Identity, "root, or the relay that it is behind from now on";
    may "keyStatus": Schema::Word(&["undefined"]),
        "the node's next inventory may bring another key";
    may "agentKey": object! { "AgentKey"
        needed "status": Schema::Word(&["undefined"]);
    }, "the same, as Rudder's clients ask for it";
};

pub(super) const IDS: &[Field] = &[may("ids", &TEXT).note("identities, separated by commas")];
pub(super) const INCLUDE: &[Field] = &[may("include", &TEXT).note(
    "minimal, default, full, and names of fields, separated by commas; names alone are shown \
     beside what is usual",
)];
