//! Settings of the HTTP router from a file: our own short TOML, or gorouter's YAML.
//!
//! A file whose name ends in `.toml` is ours. Every other is gorouter's: its addresses
//! and defaults are gorouter's too, so that a file that served there serves here.

mod choices;
mod client_rules;
mod gorouter;
mod own;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::http::router::RouterSettings;
use document::{Form, Problems, Source, parse_toml, parse_yaml};

/// Settings as a file has them.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: RouterSettings,
    /// What the file says and what has no effect here, as text for the operator.
    pub warnings: Vec<String>,
}

/// Reads a settings file.
///
/// # Errors
/// Every problem, with file, line and what was expected.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    let source = Source::read(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    match path.extension().is_some_and(|ending| ending == "toml") {
        true => read_toml(&source, folder),
        false => read_gorouter(&source, folder),
    }
}

/// Reads our own form. Files that it names are looked up from `folder` on.
///
/// # Errors
/// Every problem, with its place.
pub fn read_toml(source: &Source, folder: &Path) -> Result<Loaded, Problems> {
    let root = parse_toml(source).map_err(|problems| Problems::of(source, problems))?;
    let mut form = Form::reading(&root, folder);
    let mut settings = RouterSettings::default();
    own::describe(&mut form, &mut settings);
    let warnings = form.finish(source)?;
    Ok(Loaded { settings, warnings })
}

/// Reads gorouter's form. Keys that gorouter does not know are warnings.
///
/// # Errors
/// Every problem, with its place.
pub fn read_gorouter(source: &Source, folder: &Path) -> Result<Loaded, Problems> {
    let root = parse_yaml(source).map_err(|problems| Problems::of(source, problems))?;
    let mut form = Form::reading_foreign(&root, source, folder);
    let settings = gorouter::read(&mut form);
    let warnings = form.finish(source)?;
    Ok(Loaded { settings, warnings })
}

/// Settings as a file in our own form, with every key and what it means. Certificates and
/// secrets are left out.
pub fn print(settings: &RouterSettings) -> String {
    let mut form = Form::printing();
    own::describe(&mut form, &mut settings.clone());
    form.into_text()
}
