//! Global parameters.

use super::managed::{self, MANAGED_BY, Managed};
use super::route::{Route, Work};
use super::schema::{Schema, TEXT, Wrong, object};
use crate::definitions::Definitions;
use crate::model::property::GlobalParameter;

/// Every mode of inheritance.
const MODES: [&str; 18] = [
    "moo", "moa", "mop", "mao", "maa", "map", "mpo", "mpa", "mpp", "ooo", "ooa", "oop", "oao",
    "oaa", "oap", "opo", "opa", "opp",
];

static PARAMETER: Schema = object! { "Parameter"
    may "id": Schema::PropertyName, "its name; needed to create it";
    may "value": Schema::Any, "any JSON; needed to create it";
    may "description": TEXT;
    may "inheritMode": Schema::Word(&MODES),
        "how what groups and nodes say is laid over it: objects are merged or overridden (m, o), \
         lists and texts overridden, appended or prepended (o, a, p); moo if it is left out";
    + MANAGED_BY;
};
static PARAMETERS: Schema = Schema::List(&PARAMETER, usize::MAX);

/// The calls of parameters.
pub(super) const ROUTES: &[Route] = managed::routes!(
    GlobalParameter,
    "parameters",
    "Parameter",
    "parameterDetails",
    &PARAMETER,
    &PARAMETERS
);

impl Managed for GlobalParameter {
    managed::kind!("parameter", parameters, Parameter);

    const NEEDED: &'static [&'static str] = &["id", "value"];

    fn wrong(&self, _: &Definitions) -> Vec<Wrong> {
        let wrong = Definitions::check_parameter(self).into_iter();
        wrong.map(|one| Wrong::new("value", one.message)).collect()
    }

    /// Variables in texts name it, which are found when policies are made.
    fn users(_: &str, _: &Definitions) -> Vec<String> {
        Vec::new()
    }
}
