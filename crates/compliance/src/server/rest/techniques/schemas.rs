//! What techniques look like.

use crate::model::directive::VALUE_BYTES;
use crate::model::technique::{FOREACH, ITEMS};
use crate::server::rest::managed::{MANAGED_BY, SYSTEM};
use crate::server::rest::schema::{Schema, TEXT, object};

static CONSTRAINT: Schema = object! { "Constraint"
    may "type": TEXT,
        "string, textarea, integer, boolean, perm, mail, ip, datetime, size, password or \
         sharedfile; others are not checked";
    may "default": Schema::Text(VALUE_BYTES), "where a directive gives none";
    may "mayBeEmpty": Schema::Flag;
    may "regex": TEXT, "it matches a value as a whole";
};

static PARAMETER: Schema = object! { "TechniqueParameter"
    may "id": Schema::Identity, "its name if it is left out";
    needed "name": Schema::Name, "${TECHNIQUE.NAME} is its value";
    may "description": TEXT;
    may "constraints": CONSTRAINT;
};
static REPORTING_MODES: Schema = Schema::Word(&[
    "weighted",
    "focus",
    "focus-worst",
    "disabled",
    "worst-case-weighted-sum",
    "worst-case-weighted-one",
]);
static REPORTING: Schema = object! { "Reporting"
    needed "mode": REPORTING_MODES;
    may "id": TEXT, "of focus: the call that counts";
};
static SETS: Schema = Schema::List(&Schema::Map(&Schema::Any), FOREACH);
static MODE: Schema = Schema::Word(&["audit", "enforce"]);
static PARAMS: Schema = Schema::List(
    &Schema::Pair(&Schema::Text(VALUE_BYTES), &Schema::Any),
    ITEMS,
);
static ITEM_LIST: Schema = Schema::List(&ITEM, ITEMS);
static ITEM: Schema = Schema::Either(&[
    &object! { "MethodCall"
        needed "method": Schema::Identity, "file_content";
        may "params": PARAMS, "names and values, in the order of the method";
        may "id": TEXT, "one of its place if it is left out";
        may "name": TEXT, "the component; the method's if left out";
        may "condition": TEXT, "under which it runs";
        may "policy_mode_override": MODE;
        may "reporting": REPORTING;
        may "foreach": SETS, "one of it for each of these";
        may "foreach_name": TEXT, "${NAME.KEY} is a value of the set";
    },
    &object! { "MethodBlock"
        needed "items": ITEM_LIST, "calls and blocks";
        may "id": TEXT, "one of its place if it is left out";
        needed "name": Schema::Name, "the component";
        may "condition": TEXT, "under which all in it runs";
        may "policy_mode_override": MODE;
        may "reporting": REPORTING, "how all in it is summed up";
        may "foreach": SETS, "one of it for each of these";
        may "foreach_name": TEXT, "${NAME.KEY} is a value of the set";
    },
]);

static VARIABLE: Schema = object! { "SectionVariable"
    needed "name": Schema::Name;
    may "description": TEXT;
    may "kind": Schema::Word(&["INPUT", "SELECT1", "SELECT", "REPORTKEYS"]);
    may "items": Schema::List(&object! { "SectionItem"
        needed "label": TEXT;
        needed "value": TEXT;
    }, ITEMS), "values to choose from";
    may "constraint": CONSTRAINT;
    may "reportKeys": Schema::List(&object! { "ReportKey"
        needed "value": TEXT;
        may "id": TEXT;
    }, ITEMS), "of REPORTKEYS: the values that will be reported";
};
static SECTION_LIST: Schema = Schema::List(&SECTION, ITEMS);
static SECTION: Schema = object! { "TechniqueSection"
    needed "name": Schema::Name;
    may "multivalued": Schema::Flag;
    may "component": Schema::Flag, "is it reported?";
    may "componentKey": TEXT, "the variable that reports name";
    may "id": TEXT;
    may "reporting": TEXT, "it is a block of the sections in it";
    may "variables": Schema::List(&VARIABLE, ITEMS);
    may "sections": SECTION_LIST;
};

static BODY: Schema = Schema::Either(&[
    &object! { "MethodsBody"
        needed "methods": object! { "Methods"
            may "params": Schema::List(&PARAMETER, ITEMS);
            may "items": ITEM_LIST, "in the order in which agents run them";
        }, "calls of methods";
    },
    &object! { "SectionsBody" needed "sections": SECTION_LIST, "sections with variables"; },
]);

/// A technique of one version.
pub(super) static TECHNIQUE: Schema = object! { "Technique"
    may "id": Schema::Identity, "needed to create it";
    may "version": Schema::Identity, "needed to create it";
    may "name": Schema::Name, "needed to create it";
    may "category": TEXT;
    may "description": TEXT;
    may "multiInstance": Schema::Flag,
        "may a node have several directives of it? if it is left out: is it one of methods";
    may "generation": Schema::Word(&["merged", "separated", "separated-with-parameters"]),
        "how several directives of it on one node become policies";
    may "body": BODY, "needed to create it";
    + SYSTEM;
    + MANAGED_BY;
};
/// Some of them.
pub(super) static TECHNIQUES: Schema = Schema::List(&TECHNIQUE, usize::MAX);
