//! The types of reports.

use ReportKind as K;

/// What a report tells, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// `result_success`: it is as it should be.
    ResultSuccess,
    /// `result_repaired`: it was not, and now is.
    ResultRepaired,
    /// `result_error`: it is not, and could not be made so.
    ResultError,
    /// `result_na`: its condition does not hold.
    ResultNotApplicable,
    /// `audit_compliant`: it is as it should be.
    AuditCompliant,
    /// `audit_noncompliant`: it is not, and was left so.
    AuditNonCompliant,
    /// `audit_error`: it could not be found out.
    AuditError,
    /// `audit_na`: its condition does not hold.
    AuditNotApplicable,
    /// `log_trace`
    LogTrace,
    /// `log_debug`
    LogDebug,
    /// `log_info`, `log_inform`
    LogInfo,
    /// `log_warn`, `log_warning`
    LogWarn,
    /// `log_repaired`
    LogRepaired,
    /// `control`: a marker of the run.
    Control,
    /// `report_json`: data for plugins.
    Json,
    /// Anything else.
    Unknown,
}

/// Names, the canonical one of each type first.
const NAMES: [(&str, ReportKind); 17] = [
    ("result_success", K::ResultSuccess),
    ("result_repaired", K::ResultRepaired),
    ("result_error", K::ResultError),
    ("result_na", K::ResultNotApplicable),
    ("audit_compliant", K::AuditCompliant),
    ("audit_noncompliant", K::AuditNonCompliant),
    ("audit_error", K::AuditError),
    ("audit_na", K::AuditNotApplicable),
    ("log_trace", K::LogTrace),
    ("log_debug", K::LogDebug),
    ("log_info", K::LogInfo),
    ("log_inform", K::LogInfo),
    ("log_warn", K::LogWarn),
    ("log_warning", K::LogWarn),
    ("log_repaired", K::LogRepaired),
    ("control", K::Control),
    ("report_json", K::Json),
];

impl ReportKind {
    /// The type of a name in any case.
    pub fn from_name(name: &str) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Self::Unknown, |(_, kind)| *kind)
    }

    /// The name that agents write; of an unknown type, none.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    /// Does it inform only?
    pub fn is_log(self) -> bool {
        use ReportKind::{LogDebug, LogInfo, LogRepaired, LogTrace, LogWarn};
        matches!(self, LogTrace | LogDebug | LogInfo | LogWarn | LogRepaired)
    }
}
