//! Rules, groups and directives in the trees in which people look for them. A category is there
//! because something names it, so that its name is its identity.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::answers::{ApiError, under};
use super::managed::listed;
use super::route::{Answer, Call, Route, routes};
use super::schema::{Schema, TEXT, object, objects};
use crate::model::directive::Directive;
use crate::model::group::Group;
use crate::model::rule::Rule;
use crate::server::service::Service;

/// The category of rules, and that of groups, that hold all others.
pub(super) const RULES_ROOT: &str = "rootRuleCategory";
pub(super) const GROUPS_ROOT: &str = "GroupRoot";

macro_rules! category {
    ($name:literal, $items:literal) => {
        object! { $name
            needed "id": TEXT;
            needed "name": TEXT;
            needed "description": TEXT;
            needed "parent": TEXT, "identity of the one that it is in";
            needed "categories": ANY_LIST, "those in it";
            needed $items: ANY_LIST, "identities; in a tree whole";
        }
    };
}

static ANY_LIST: Schema = Schema::List(&Schema::Any, usize::MAX);
static OF_RULES: Schema = category!("RuleCategory", "rules");
static OF_GROUPS: Schema = category!("GroupCategory", "groups");
static OF_TECHNIQUES: Schema = Schema::List(
    &object! { "TechniqueCategory"
        needed "name": TEXT;
        needed "description": TEXT;
        needed "subCategories": ANY_LIST;
        needed "techniques": objects! { "TechniqueWithDirectives"
            needed "id": TEXT;
            needed "name": TEXT;
            needed "directives": super::directives::LIST;
        };
    },
    1,
);

/// The calls of trees and categories.
pub(super) const ROUTES: &[Route] = routes! {
    get "rules/tree" "getRuleTree" "All rules in their categories"
        => "ruleCategories": OF_RULES, Now(|service, _| Ok(tree(&RULES, service)));
    get "rules/categories" "getRuleCategories" "Categories of rules"
        => "ruleCategories": ANY_LIST, Now(|service, _| Ok(all(&RULES, service)));
    get "rules/categories/{id}" "getRuleCategoryDetails" "A category of rules"
        => "ruleCategories": OF_RULES, Now(|service, call| one(&RULES, service, call));
    get "groups/tree" "getGroupTree" "All groups in their categories"
        => "groupCategories": OF_GROUPS, Now(|service, _| Ok(tree(&GROUPS, service)));
    get "groups/categories" "getGroupCategories" "Categories of groups"
        => "groupCategories": ANY_LIST, Now(|service, _| Ok(all(&GROUPS, service)));
    get "groups/categories/{id}" "getGroupCategoryDetails" "A category of groups"
        => "groupCategories": OF_GROUPS, Now(|service, call| one(&GROUPS, service, call));
    get "directives/tree" "directiveTree" "All directives by their techniques"
        => "directives": OF_TECHNIQUES, Now(|service, _| Ok(directives(service)));
};

/// A kind of things in categories.
struct Kind {
    /// Under which key an answer has it.
    key: &'static str,
    items: &'static str,
    /// Which field of a thing names its category.
    field: &'static str,
    root: &'static str,
    name: &'static str,
    list: fn(&Service) -> Vec<Value>,
}

const RULES: Kind = Kind {
    key: "ruleCategories",
    items: "rules",
    field: "categoryId",
    root: RULES_ROOT,
    name: "Rules",
    list: |service| listed::<Rule>(service, |_| true),
};
const GROUPS: Kind = Kind {
    key: "groupCategories",
    items: "groups",
    field: "category",
    root: GROUPS_ROOT,
    name: "Root of the group and group categories",
    list: |service| listed::<Group>(service, |_| true),
};

impl Kind {
    /// What is in each category; the root has its own even if it is empty.
    fn by_category(&self, service: &Service) -> BTreeMap<String, Vec<Value>> {
        let mut found = BTreeMap::from([(self.root.to_owned(), Vec::new())]);
        for one in (self.list)(service) {
            let category = one.get(self.field).and_then(Value::as_str);
            let category = category.unwrap_or(self.root).to_owned();
            found.entry(category).or_default().push(one);
        }
        found
    }

    fn category(&self, id: &str, categories: Vec<Value>, items: Vec<Value>) -> Map<String, Value> {
        let name = if id == self.root { self.name } else { id };
        let fields: [(&str, Value); 6] = [
            ("id", id.into()),
            ("name", name.into()),
            ("description", "".into()),
            ("parent", self.root.into()),
            ("categories", categories.into()),
            (self.items, items.into()),
        ];
        let fields = fields.into_iter();
        fields.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The same with identities alone.
    fn flat(&self, id: &str, found: &BTreeMap<String, Vec<Value>>) -> Option<Value> {
        let items = found.get(id)?.iter();
        let items = items.filter_map(|one| one.get("id").cloned()).collect();
        let within = found.keys().filter(|one| id == self.root && *one != id);
        let within = within.map(|one| one.as_str().into()).collect();
        Some(self.category(id, within, items).into())
    }
}

fn tree(kind: &Kind, service: &Service) -> Value {
    let mut found = kind.by_category(service);
    let items = found.remove(kind.root).unwrap_or_default();
    let within = found
        .into_iter()
        .map(|(id, items)| kind.category(&id, Vec::new(), items).into());
    let root = kind.category(kind.root, within.collect(), items);
    under(kind.key, root.into())
}

fn all(kind: &Kind, service: &Service) -> Value {
    let found = kind.by_category(service);
    let all = found.keys().filter_map(|id| kind.flat(id, &found));
    under(kind.key, all.collect())
}

fn one(kind: &Kind, service: &Service, call: &Call<'_>) -> Answer {
    let found = kind.by_category(service);
    let one = kind.flat(call.id(), &found);
    let one = one.ok_or_else(|| ApiError::not_found("category", call.id()))?;
    Ok(under(kind.key, one))
}

fn directives(service: &Service) -> Value {
    let mut by_technique: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for directive in listed::<Directive>(service, |_| true) {
        let technique = directive.get("techniqueName").and_then(Value::as_str);
        let technique = technique.unwrap_or_default().to_owned();
        by_technique.entry(technique).or_default().push(directive);
    }
    let state = service.view.read();
    let names: BTreeMap<&str, &str> = state
        .definitions
        .techniques
        .values()
        .map(|one| (one.id.as_str(), one.name.as_str()))
        .collect();
    let techniques = names.iter().map(|(id, name)| {
        let directives = by_technique.remove(*id).unwrap_or_default();
        json!({"id": id, "name": name, "directives": directives})
    });
    let techniques: Vec<Value> = techniques.collect();
    let root = json!({
        "name": "Root of active techniques library",
        "description": "",
        "subCategories": [],
        "techniques": techniques,
    });
    under("directives", vec![root].into())
}
