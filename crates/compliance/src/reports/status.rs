//! What a component can be, by its reports.

use super::runlog::ReportKind;

macro_rules! statuses {
    ($($(#[$doc:meta])* $status:ident $name:literal,)*) => {
        /// The status of one value of a component. The order is that of Rudder, from best to worst.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Status {
            $($(#[$doc])* $status,)*
        }

        impl Status {
            /// All, from best to worst.
            pub const ALL: [Self; 14] = [$(Self::$status),*];

            /// The name in Rudder's API.
            pub fn api_name(self) -> &'static str {
                match self { $(Self::$status => $name,)* }
            }
        }
    };
}

statuses! {
    /// Enforced: its condition does not hold.
    EnforceNotApplicable "successNotApplicable",
    /// Audited: its condition does not hold.
    AuditNotApplicable "auditNotApplicable",
    /// Audited: it is as it should be.
    AuditCompliant "auditCompliant",
    /// Enforced: it was as it should be.
    EnforceSuccess "successAlreadyOK",
    /// A report may still come.
    Pending "applying",
    /// Nobody reports.
    Disabled "reportsDisabled",
    /// The node is silent.
    NoAnswer "noReport",
    /// The node reported, but not this.
    Missing "unexpectedMissingComponent",
    /// Enforced: it was not as it should be, and now is.
    EnforceRepaired "successRepaired",
    /// Audited: it is not as it should be.
    AuditNonCompliant "auditNonCompliant",
    /// Audited: it could not be found out.
    AuditError "auditError",
    /// Enforced: it could not be made so.
    EnforceError "error",
    /// A report that nobody expected.
    Unexpected "unexpectedUnknownComponent",
    /// Audited where it should be enforced, or the reverse. Rudder shows it, but no longer finds
    /// it.
    BadPolicyMode "badPolicyMode",
}

impl Status {
    /// Does it count as compliant?
    pub fn is_compliant(self) -> bool {
        matches!(
            self,
            Self::EnforceNotApplicable
                | Self::AuditNotApplicable
                | Self::AuditCompliant
                | Self::EnforceSuccess
                | Self::EnforceRepaired
        )
    }

    /// The status that a report tells by its type; none if compliance does not depend on it.
    pub fn of_report(kind: ReportKind) -> Option<Self> {
        Some(match kind {
            ReportKind::ResultSuccess => Self::EnforceSuccess,
            ReportKind::ResultRepaired => Self::EnforceRepaired,
            ReportKind::ResultError => Self::EnforceError,
            ReportKind::ResultNotApplicable => Self::EnforceNotApplicable,
            ReportKind::AuditCompliant => Self::AuditCompliant,
            ReportKind::AuditNonCompliant => Self::AuditNonCompliant,
            ReportKind::AuditError => Self::AuditError,
            ReportKind::AuditNotApplicable => Self::AuditNotApplicable,
            ReportKind::Unknown => Self::Unexpected,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn each_has_a_name_and_five_comply() {
        let mut names = Status::ALL.map(Status::api_name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let compliant = Status::ALL.iter().filter(|status| status.is_compliant());
        assert_eq!(compliant.count(), 5);
    }
}
