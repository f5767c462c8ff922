//! What a component can be, by its reports.

use Status as S;

use super::runlog::ReportKind;

/// The status of one value of a component. The order is that of Rudder, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Enforced: its condition does not hold.
    EnforceNotApplicable,
    /// Audited: its condition does not hold.
    AuditNotApplicable,
    /// Audited: it is as it should be.
    AuditCompliant,
    /// Enforced: it was as it should be.
    EnforceSuccess,
    /// A report may still come.
    Pending,
    /// Nobody reports.
    Disabled,
    /// The node is silent.
    NoAnswer,
    /// The node reported, but not this.
    Missing,
    /// Enforced: it was not as it should be, and now is.
    EnforceRepaired,
    /// Audited: it is not as it should be.
    AuditNonCompliant,
    /// Audited: it could not be found out.
    AuditError,
    /// Enforced: it could not be made so.
    EnforceError,
    /// A report that nobody expected.
    Unexpected,
    /// Audited where it should be enforced, or the reverse. Rudder shows it, but no longer finds
    /// it.
    BadPolicyMode,
}

impl Status {
    /// All, from best to worst.
    pub const ALL: [Self; 14] = [
        S::EnforceNotApplicable,
        S::AuditNotApplicable,
        S::AuditCompliant,
        S::EnforceSuccess,
        S::Pending,
        S::Disabled,
        S::NoAnswer,
        S::Missing,
        S::EnforceRepaired,
        S::AuditNonCompliant,
        S::AuditError,
        S::EnforceError,
        S::Unexpected,
        S::BadPolicyMode,
    ];

    /// The name in Rudder's API.
    pub fn api_name(self) -> &'static str {
        match self {
            S::EnforceNotApplicable => "successNotApplicable",
            S::AuditNotApplicable => "auditNotApplicable",
            S::AuditCompliant => "auditCompliant",
            S::EnforceSuccess => "successAlreadyOK",
            S::Pending => "applying",
            S::Disabled => "reportsDisabled",
            S::NoAnswer => "noReport",
            S::Missing => "unexpectedMissingComponent",
            S::EnforceRepaired => "successRepaired",
            S::AuditNonCompliant => "auditNonCompliant",
            S::AuditError => "auditError",
            S::EnforceError => "error",
            S::Unexpected => "unexpectedUnknownComponent",
            S::BadPolicyMode => "badPolicyMode",
        }
    }

    /// Does it count as compliant?
    pub fn is_compliant(self) -> bool {
        use Status::{
            AuditCompliant, AuditNotApplicable, EnforceNotApplicable, EnforceRepaired,
            EnforceSuccess,
        };
        matches!(
            self,
            EnforceNotApplicable
                | AuditNotApplicable
                | AuditCompliant
                | EnforceSuccess
                | EnforceRepaired
        )
    }

    /// The status that a report tells by its type; none if compliance does not depend on it.
    pub fn of_report(kind: ReportKind) -> Option<Self> {
        Some(match kind {
            ReportKind::ResultSuccess => S::EnforceSuccess,
            ReportKind::ResultRepaired => S::EnforceRepaired,
            ReportKind::ResultError => S::EnforceError,
            ReportKind::ResultNotApplicable => S::EnforceNotApplicable,
            ReportKind::AuditCompliant => S::AuditCompliant,
            ReportKind::AuditNonCompliant => S::AuditNonCompliant,
            ReportKind::AuditError => S::AuditError,
            ReportKind::AuditNotApplicable => S::AuditNotApplicable,
            ReportKind::Unknown => S::Unexpected,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn the_order_is_that_of_the_list() {
        assert!(Status::ALL.is_sorted());
        for (rank, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, rank);
        }
        let mut names = Status::ALL.map(Status::api_name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let compliant = Status::ALL.iter().filter(|status| status.is_compliant());
        assert_eq!(compliant.count(), 5);
    }
}
