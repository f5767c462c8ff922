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
    /// Its parameters, with spaces between: `?` follows one that may be left out, `|` stands between two
    /// names of one.
    params: &'static str,
}

const fn known(name: &'static str, key: &'static str, params: &'static str) -> Known {
    as_prefix(name, key, name, params)
}

const fn as_prefix(
    name: &'static str,
    key: &'static str,
    prefix: &'static str,
    params: &'static str,
) -> Known {
    Known {
        name,
        key,
        prefix,
        params,
    }
}

impl Known {
    /// The names of all of its parameters.
    pub fn params(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = self.params.split([' ', '|']);
        all.map(|name| name.trim_end_matches('?'))
    }

    /// Those that a call must have: the names of each.
    pub fn required(&self) -> impl Iterator<Item = impl Iterator<Item = &'static str> + Clone> {
        let all = self.params.split(' ').filter(|name| !name.ends_with('?'));
        all.map(|names| names.split('|'))
    }
}

/// The methods that agents have, by their names.
pub const METHODS: [Known; 77] = [
    known("audit_from_command", "command", "command compliant_codes?"),
    known("command_execution", "command", "command"),
    known(
        "command_execution_once",
        "command",
        "command ok_codes? until? unique_id?",
    ),
    known(
        "command_execution_result",
        "command",
        "command kept_codes? repaired_codes?",
    ),
    known(
        "condition_from_command",
        "condition",
        "condition command true_codes? false_codes?",
    ),
    known(
        "condition_from_expression",
        "condition",
        "condition expression",
    ),
    known(
        "condition_from_string_match",
        "condition",
        "condition value? regex",
    ),
    known(
        "condition_from_variable_existence",
        "condition",
        "condition variable_name",
    ),
    known(
        "condition_from_variable_match",
        "condition",
        "condition variable_name expected_match",
    ),
    known("condition_once", "condition", "condition"),
    known("directory_absent", "path", "path recursive?"),
    known("directory_present", "path", "path"),
    as_prefix(
        "environment_variable",
        "name",
        "environment_variable_present",
        "name value?",
    ),
    known("environment_variable_present", "name", "name value?"),
    known("file_absent", "path", "path"),
    known("file_block_present", "path", "path block"),
    known(
        "file_block_present_in_section",
        "path",
        "path section_start section_end block?",
    ),
    as_prefix(
        "file_content",
        "path",
        "file_lines_present",
        "path lines|text enforce?",
    ),
    known("file_from_local_source", "path", "source path"),
    as_prefix(
        "file_from_local_source_recursion",
        "path",
        "file_from_local_source",
        "source path recursion?",
    ),
    known(
        "file_from_local_source_with_check",
        "path",
        "source path check_command rc_ok?",
    ),
    known("file_from_shared_folder", "path", "source path hash_type?"),
    known("file_from_string_mustache", "path", "template path"),
    known("file_from_template", "path", "source_template path"),
    as_prefix(
        "file_from_template_jinja2",
        "path",
        "file_from_template",
        "source_template path",
    ),
    as_prefix(
        "file_from_template_mustache",
        "path",
        "file_from_template",
        "source_template path",
    ),
    as_prefix(
        "file_from_template_type",
        "path",
        "file_from_template",
        "source_template path template_type",
    ),
    known(
        "file_key_value_present",
        "path",
        "path key value? separator?",
    ),
    known(
        "file_key_value_present_in_ini_section",
        "path",
        "path section name value?",
    ),
    as_prefix(
        "file_key_value_present_option",
        "path",
        "file_key_value_present",
        "path key value? separator? option?",
    ),
    known(
        "file_line_present_in_ini_section",
        "path",
        "path section line",
    ),
    known("file_lines_absent", "path", "path lines|text"),
    known("file_lines_present", "path", "path lines|text"),
    known("file_present", "path", "path"),
    known("file_replace_lines", "path", "path line replacement?"),
    known("file_symlink_present", "path", "source|target path"),
    as_prefix(
        "file_symlink_present_force",
        "path",
        "file_symlink_present",
        "source|target path",
    ),
    known("group_absent", "name", "name"),
    known("group_present", "name", "name"),
    known(
        "http_request_check_status_headers",
        "url",
        "method? url expected_status headers?",
    ),
    known("kernel_module_loaded", "name", "name"),
    known("kernel_module_not_loaded", "name", "name"),
    known(
        "package_absent",
        "name",
        "name version? architecture? provider?",
    ),
    known(
        "package_present",
        "name",
        "name version? architecture? provider?",
    ),
    known(
        "package_state",
        "name",
        "name version? architecture? provider? state?",
    ),
    known("permissions", "path", "path mode? owner? group?"),
    as_prefix(
        "permissions_dirs",
        "path",
        "permissions",
        "path mode? owner? group?",
    ),
    as_prefix(
        "permissions_dirs_recursive",
        "path",
        "permissions",
        "path mode? owner? group?",
    ),
    as_prefix(
        "permissions_recursive",
        "path",
        "permissions",
        "path mode? owner? group?",
    ),
    as_prefix(
        "permissions_type_recursion",
        "path",
        "permissions",
        "path mode? owner? group? type? recursion?",
    ),
    known(
        "report_if_condition",
        "report_message",
        "report_message condition?",
    ),
    known(
        "schedule_simple",
        "job_id",
        "job_id agent_periodicity max_execution_delay_minutes? max_execution_delay_hours? start_on_minutes? start_on_hours? start_on_day_of_week? periodicity_minutes? periodicity_hours? periodicity_days? mode?",
    ),
    known("service_action", "name", "name action"),
    known("service_disabled", "name", "name"),
    known("service_enabled", "name", "name"),
    known("service_reload", "name", "name"),
    known("service_restart", "name", "name"),
    known("service_started", "name", "name"),
    known("service_stopped", "name", "name"),
    known("sysctl_value", "key", "key value filename? option?"),
    known("user_absent", "login", "login"),
    known("user_fullname", "login", "login fullname?"),
    known("user_group", "login", "login group_name"),
    known("user_home", "login", "login home"),
    known("user_locked", "login", "login"),
    known("user_password_hash", "login", "login password"),
    known("user_present", "login", "login"),
    known("user_primary_group", "login", "login primary_group"),
    as_prefix(
        "user_secondary_group",
        "login",
        "user_secondary_groups",
        "login groups force?",
    ),
    known("user_secondary_groups", "login", "login groups force?"),
    known("user_shell", "login", "login shell"),
    known("user_uid", "login", "login uid"),
    known("variable_string", "name", "prefix name value?"),
    known(
        "variable_string_default",
        "name",
        "prefix name source_variable default_value?",
    ),
    known(
        "variable_string_from_command",
        "name",
        "prefix name command",
    ),
    known("variable_string_from_file", "name", "prefix name file_name"),
    known("variable_string_match", "name", "name expected_match"),
];

/// What is known of a method.
pub fn of(method: &str) -> Option<&'static Known> {
    let place = METHODS.binary_search_by(|one| one.name.cmp(method)).ok()?;
    METHODS.get(place)
}

/// Does a method fill a template, which may name any property of its node?
pub fn fills_template(method: &str) -> bool {
    matches!(
        method,
        "file_from_string_mustache"
            | "file_from_template_jinja2"
            | "file_from_template_mustache"
            | "file_from_template_type"
    )
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
        for method in &METHODS {
            let mut required = method.required();
            let key = required.any(|mut names| names.any(|name| name == method.key));
            assert!(key, "{method:?}");
        }
        assert!(METHODS.is_sorted_by(|one, next| one.name < next.name));
    }
}
