//! What Rudder's library says of its generic methods: the parameter by which reports name a call,
//! and what the conditions of a call begin with. Facts of its `policies/lib/tree/30_generic_methods`.

/// A generic method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// The parameter that reports name, which need not be the first.
    pub key: &'static str,
    /// What its conditions begin with, where that is not its name.
    pub prefix: &'static str,
}

const fn known(name: &'static str, key: &'static str) -> Known {
    as_prefix(name, key, name)
}

const fn as_prefix(name: &'static str, key: &'static str, prefix: &'static str) -> Known {
    Known { name, key, prefix }
}

/// The methods that agents have, by their names.
pub const METHODS: [Known; 77] = [
    known("audit_from_command", "command"),
    known("command_execution", "command"),
    known("command_execution_once", "command"),
    known("command_execution_result", "command"),
    known("condition_from_command", "condition"),
    known("condition_from_expression", "condition"),
    known("condition_from_string_match", "condition"),
    known("condition_from_variable_existence", "condition"),
    known("condition_from_variable_match", "condition"),
    known("condition_once", "condition"),
    known("directory_absent", "path"),
    known("directory_present", "path"),
    as_prefix(
        "environment_variable",
        "name",
        "environment_variable_present",
    ),
    known("environment_variable_present", "name"),
    known("file_absent", "path"),
    known("file_block_present", "path"),
    known("file_block_present_in_section", "path"),
    as_prefix("file_content", "path", "file_lines_present"),
    known("file_from_local_source", "path"),
    as_prefix(
        "file_from_local_source_recursion",
        "path",
        "file_from_local_source",
    ),
    known("file_from_local_source_with_check", "path"),
    known("file_from_shared_folder", "path"),
    known("file_from_string_mustache", "path"),
    known("file_from_template", "path"),
    as_prefix("file_from_template_jinja2", "path", "file_from_template"),
    as_prefix("file_from_template_mustache", "path", "file_from_template"),
    as_prefix("file_from_template_type", "path", "file_from_template"),
    known("file_key_value_present", "path"),
    known("file_key_value_present_in_ini_section", "path"),
    as_prefix(
        "file_key_value_present_option",
        "path",
        "file_key_value_present",
    ),
    known("file_line_present_in_ini_section", "path"),
    known("file_lines_absent", "path"),
    known("file_lines_present", "path"),
    known("file_present", "path"),
    known("file_replace_lines", "path"),
    known("file_symlink_present", "path"),
    as_prefix("file_symlink_present_force", "path", "file_symlink_present"),
    known("group_absent", "name"),
    known("group_present", "name"),
    known("http_request_check_status_headers", "url"),
    known("kernel_module_loaded", "name"),
    known("kernel_module_not_loaded", "name"),
    known("package_absent", "name"),
    known("package_present", "name"),
    known("package_state", "name"),
    known("permissions", "path"),
    as_prefix("permissions_dirs", "path", "permissions"),
    as_prefix("permissions_dirs_recursive", "path", "permissions"),
    as_prefix("permissions_recursive", "path", "permissions"),
    as_prefix("permissions_type_recursion", "path", "permissions"),
    known("report_if_condition", "report_message"),
    known("schedule_simple", "job_id"),
    known("service_action", "name"),
    known("service_disabled", "name"),
    known("service_enabled", "name"),
    known("service_reload", "name"),
    known("service_restart", "name"),
    known("service_started", "name"),
    known("service_stopped", "name"),
    known("sysctl_value", "key"),
    known("user_absent", "login"),
    known("user_fullname", "login"),
    known("user_group", "login"),
    known("user_home", "login"),
    known("user_locked", "login"),
    known("user_password_hash", "login"),
    known("user_present", "login"),
    known("user_primary_group", "login"),
    as_prefix("user_secondary_group", "login", "user_secondary_groups"),
    known("user_secondary_groups", "login"),
    known("user_shell", "login"),
    known("user_uid", "login"),
    known("variable_string", "name"),
    known("variable_string_default", "name"),
    known("variable_string_from_command", "name"),
    known("variable_string_from_file", "name"),
    known("variable_string_match", "name"),
];

/// What is known of a method.
pub fn of(method: &str) -> Option<&'static Known> {
    let place = METHODS.binary_search_by(|one| one.name.cmp(method)).ok()?;
    METHODS.get(place)
}

/// The place of the parameter by which reports name a call, among these names: the first, if the
/// method is not known or has not got it.
pub fn key_place<'n>(method: &str, names: impl IntoIterator<Item = &'n str>) -> usize {
    let mut names = names.into_iter();
    let place = of(method).and_then(|known| names.position(|name| name == known.key));
    place.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_name_a_call_by_what_it_is_about() {
        for (method, names, place) in [
            ("file_symlink_present", &["source", "path"][..], 1),
            ("variable_string", &["prefix", "name", "value"], 1),
            ("file_content", &["path", "lines"], 0),
            ("file_content", &["lines"], 0),
            ("unknown", &["a", "path"], 0),
        ] {
            assert_eq!(key_place(method, names.iter().copied()), place, "{method}");
        }
        assert!(METHODS.is_sorted_by(|one, next| one.name < next.name));
    }
}
