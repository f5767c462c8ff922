//! Bounds and names of what a technique consists of.

use super::{Action, DEPTH, FOREACH, ITEMS, MethodItem, Section};
use crate::model::check_id;
use crate::model::reporting::ReportingLogic;

pub(super) fn check_sections(
    sections: &[Section],
    depth: usize,
    items: &mut usize,
) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("sections are nested deeper than {DEPTH}"));
    }
    for section in sections {
        let keys = section.variables.iter().map(|one| one.report_keys.len());
        *items += 1 + section.variables.len() + keys.sum::<usize>();
        if *items > ITEMS {
            return Err(format!("more than {ITEMS} sections and variables"));
        }
        for variable in &section.variables {
            variable
                .constraint
                .check_itself()
                .map_err(|error| format!("the variable \"{}\": {error}", variable.name))?;
        }
        if section.reporting == Some(ReportingLogic::Focus(String::new())) {
            return Err(format!(
                "the section \"{}\" has reporting \"focus:\"; expected focus:COMPONENT",
                section.name
            ));
        }
        if let Some(key) = &section.component_key
            && !section.variables.iter().any(|one| &one.name == key)
        {
            return Err(format!(
                "the section \"{}\" has no variable \"{key}\", which is to be its component key",
                section.name
            ));
        }
        check_sections(&section.sections, depth + 1, items)?;
    }
    Ok(())
}

pub(super) fn check_methods(
    list: &[MethodItem],
    depth: usize,
    items: &mut usize,
) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("blocks are nested deeper than {DEPTH}"));
    }
    for item in list {
        let MethodItem { id, foreach, .. } = item;
        *items += 1 + foreach.len();
        if *items > ITEMS {
            return Err(format!("more than {ITEMS} calls and blocks"));
        }
        if foreach.len() > FOREACH {
            return Err(format!(
                "foreach of \"{id}\" has {} sets; at most {FOREACH} are kept",
                foreach.len()
            ));
        }
        check_id("method call", id).map_err(|error| error.to_string())?;
        item.reporting
            .logic()
            .map_err(|error| format!("the item \"{id}\": {error}"))?;
        if let Action::Block { items: inner } = &item.action {
            if item.name.is_empty() {
                return Err(format!("the block \"{id}\" has no name"));
            }
            check_methods(inner, depth + 1, items)?;
        }
    }
    Ok(())
}
