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

/// Of each method its name, the beginning of its conditions if that is another, the parameter that
/// reports name, and all parameters.
macro_rules! methods {
    ($($name:literal $(as $prefix:literal)?, $key:literal, $params:literal;)*) => {
        [$(known($name, $key, $params)$(.prefixed($prefix))?),*]
    };
}

const fn known(name: &'static str, key: &'static str, params: &'static str) -> Known {
    Known {
        name,
        key,
        prefix: name,
        params,
    }
}

impl Known {
    const fn prefixed(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

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
pub const METHODS: [Known; 77] = methods! {
    "audit_from_command", "command", "command compliant_codes?";
    "command_execution", "command", "command";
    "command_execution_once", "command", "command ok_codes? until? unique_id?";
    "command_execution_result", "command", "command kept_codes? repaired_codes?";
    "condition_from_command", "condition", "condition command true_codes? false_codes?";
    "condition_from_expression", "condition", "condition expression";
    "condition_from_string_match", "condition", "condition value? regex";
    "condition_from_variable_existence", "condition", "condition variable_name";
    "condition_from_variable_match", "condition", "condition variable_name expected_match";
    "condition_once", "condition", "condition";
    "directory_absent", "path", "path recursive?";
    "directory_present", "path", "path";
    "environment_variable" as "environment_variable_present", "name", "name value?";
    "environment_variable_present", "name", "name value?";
    "file_absent", "path", "path";
    "file_block_present", "path", "path block";
    "file_block_present_in_section", "path", "path section_start section_end block?";
    "file_content" as "file_lines_present", "path", "path lines|text enforce?";
    "file_from_local_source", "path", "source path";
    "file_from_local_source_recursion" as "file_from_local_source",
        "path", "source path recursion?";
    "file_from_local_source_with_check", "path", "source path check_command rc_ok?";
    "file_from_shared_folder", "path", "source path hash_type?";
    "file_from_string_mustache", "path", "template path";
    "file_from_template", "path", "source_template path";
    "file_from_template_jinja2" as "file_from_template", "path", "source_template path";
    "file_from_template_mustache" as "file_from_template", "path", "source_template path";
    "file_from_template_type" as "file_from_template", "path", "source_template path template_type";
    "file_key_value_present", "path", "path key value? separator?";
    "file_key_value_present_in_ini_section", "path", "path section name value?";
    "file_key_value_present_option" as "file_key_value_present",
        "path", "path key value? separator? option?";
    "file_line_present_in_ini_section", "path", "path section line";
    "file_lines_absent", "path", "path lines|text";
    "file_lines_present", "path", "path lines|text";
    "file_present", "path", "path";
    "file_replace_lines", "path", "path line replacement?";
    "file_symlink_present", "path", "source|target path";
    "file_symlink_present_force" as "file_symlink_present", "path", "source|target path";
    "group_absent", "name", "name";
    "group_present", "name", "name";
    "http_request_check_status_headers", "url", "method? url expected_status headers?";
    "kernel_module_loaded", "name", "name";
    "kernel_module_not_loaded", "name", "name";
    "package_absent", "name", "name version? architecture? provider?";
    "package_present", "name", "name version? architecture? provider?";
    "package_state", "name", "name version? architecture? provider? state?";
    "permissions", "path", "path mode? owner? group?";
    "permissions_dirs" as "permissions", "path", "path mode? owner? group?";
    "permissions_dirs_recursive" as "permissions", "path", "path mode? owner? group?";
    "permissions_recursive" as "permissions", "path", "path mode? owner? group?";
    "permissions_type_recursion" as "permissions",
        "path", "path mode? owner? group? type? recursion?";
    "report_if_condition", "report_message", "report_message condition?";
    "schedule_simple",
        "job_id", "job_id agent_periodicity max_execution_delay_minutes? \
         max_execution_delay_hours? start_on_minutes? start_on_hours? start_on_day_of_week? \
         periodicity_minutes? periodicity_hours? periodicity_days? mode?";
    "service_action", "name", "name action";
    "service_disabled", "name", "name";
    "service_enabled", "name", "name";
    "service_reload", "name", "name";
    "service_restart", "name", "name";
    "service_started", "name", "name";
    "service_stopped", "name", "name";
    "sysctl_value", "key", "key value filename? option?";
    "user_absent", "login", "login";
    "user_fullname", "login", "login fullname?";
    "user_group", "login", "login group_name";
    "user_home", "login", "login home";
    "user_locked", "login", "login";
    "user_password_hash", "login", "login password";
    "user_present", "login", "login";
    "user_primary_group", "login", "login primary_group";
    "user_secondary_group" as "user_secondary_groups", "login", "login groups force?";
    "user_secondary_groups", "login", "login groups force?";
    "user_shell", "login", "login shell";
    "user_uid", "login", "login uid";
    "variable_string", "name", "prefix name value?";
    "variable_string_default", "name", "prefix name source_variable default_value?";
    "variable_string_from_command", "name", "prefix name command";
    "variable_string_from_file", "name", "prefix name file_name";
    "variable_string_match", "name", "name expected_match";
};

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
