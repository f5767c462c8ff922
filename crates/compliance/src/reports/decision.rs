//! What the compliance of a node rests on: its last run, its configurations and the time.

/// Milliseconds since the start of 1970.
pub type UnixMillis = i64;

/// How long a run may be late, in milliseconds.
pub const GRACE: i64 = 5 * 60 * 1000;

/// A configuration's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigTime {
    /// When it became the node's.
    pub begin: UnixMillis,
    /// Seconds from run to run.
    pub interval: u32,
}

impl ConfigTime {
    /// Milliseconds from one run to when the next is overdue.
    pub const fn validity(self) -> i64 {
        self.interval as i64 * 1000 + GRACE
    }

    /// When a run with it is overdue, if none came.
    fn expires(self) -> UnixMillis {
        self.begin.saturating_add(self.validity())
    }
}

/// The configuration that a run was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunConfig {
    /// The run does not say.
    NoId,
    /// Nobody knows it.
    Unknown,
    /// It is still open, and so the node's current one.
    Open(ConfigTime),
    /// Another took its place.
    Ended {
        /// Its time.
        config: ConfigTime,
        /// When.
        end: UnixMillis,
    },
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts {
    /// Is compliance computed for it?
    pub enabled: bool,
    /// Does nobody report?
    pub reports_disabled: bool,
    /// Its current configuration.
    pub current: Option<ConfigTime>,
    /// The oldest configuration that is known.
    pub oldest: Option<ConfigTime>,
    /// When its last run started, and with what.
    pub run: Option<(UnixMillis, RunConfig)>,
}

/// What a node's compliance is made of. Times are the last at which it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Nothing: the node is ignored.
    Ignored,
    /// Nothing: neither run nor configuration.
    NoRunNoExpectedReport,
    /// The configuration: everything is disabled.
    ReportsDisabled,
    /// The configuration: nothing answers.
    NoReport {
        /// Since the first millisecond after this.
        since: UnixMillis,
    },
    /// The configuration: everything is pending.
    Pending {
        /// Until then.
        until: UnixMillis,
    },
    /// The run: everything is unexpected.
    NoExpectedReport,
    /// Both, and they have nothing to do with each other: the run names no configuration.
    UnexpectedNoVersion,
    /// Both, and they have nothing to do with each other: the run's configuration is unknown.
    UnexpectedUnknownVersion {
        /// Until then.
        until: UnixMillis,
    },
    /// Both, and they have nothing to do with each other: the run's configuration ended long ago.
    UnexpectedVersion,
    /// The run by its own configuration, as far as the current one has the same directives; the
    /// rest is pending.
    PendingRun {
        /// Until then.
        until: UnixMillis,
    },
    /// The run by the current configuration.
    Compliance {
        /// Until then.
        until: UnixMillis,
    },
}

impl Basis {
    /// Does a run have a part in it?
    pub fn is_of_run(self) -> bool {
        match self {
            Self::NoExpectedReport
            | Self::UnexpectedNoVersion
            | Self::UnexpectedUnknownVersion { .. }
            | Self::UnexpectedVersion
            | Self::PendingRun { .. }
            | Self::Compliance { .. } => true,
            Self::Ignored
            | Self::NoRunNoExpectedReport
            | Self::ReportsDisabled
            | Self::NoReport { .. }
            | Self::Pending { .. } => false,
        }
    }

    /// The last time at which it holds, if it ends by itself.
    pub fn until(self) -> Option<UnixMillis> {
        match self {
            Self::Pending { until }
            | Self::UnexpectedUnknownVersion { until }
            | Self::PendingRun { until }
            | Self::Compliance { until } => Some(until),
            _ => None,
        }
    }

    /// Decides by Rudder's table. What expires at a time still holds at that time.
    pub fn decide(facts: &NodeFacts, now: UnixMillis) -> Self {
        if !facts.enabled {
            return Self::Ignored;
        }
        match (facts.run, facts.current) {
            (None, None) => Self::NoRunNoExpectedReport,
            (Some(_), None) => Self::NoExpectedReport,
            (None, Some(_)) if facts.reports_disabled => Self::ReportsDisabled,
            (None, Some(current)) => {
                Self::no_report_or(current.expires(), now, |until| Self::Pending { until })
            }
            (Some((start, config)), Some(current)) => {
                Self::of_run(facts, start, config, current, now)
            }
        }
    }

    fn of_run(
        facts: &NodeFacts,
        start: UnixMillis,
        config: RunConfig,
        current: ConfigTime,
        now: UnixMillis,
    ) -> Self {
        let run_expires = |config: ConfigTime| start.saturating_add(config.validity());
        match config {
            RunConfig::NoId => {
                if facts.oldest.is_some_and(|oldest| oldest.expires() < start) {
                    return Self::UnexpectedNoVersion;
                }
                Self::no_report_or(current.expires(), start, |until| Self::Pending { until })
            }
            RunConfig::Unknown => Self::no_report_or(run_expires(current), now, |until| {
                Self::UnexpectedUnknownVersion { until }
            }),
            RunConfig::Open(config) => {
                Self::no_report_or(run_expires(config), now, |until| Self::Compliance { until })
            }
            RunConfig::Ended { config, end } => {
                if end.saturating_add(config.validity()) < start {
                    return Self::UnexpectedVersion;
                }
                Self::no_report_or(current.expires(), now, |until| Self::PendingRun { until })
            }
        }
    }

    fn no_report_or(
        expires: UnixMillis,
        now: UnixMillis,
        otherwise: impl FnOnce(UnixMillis) -> Self,
    ) -> Self {
        if expires < now {
            return Self::NoReport { since: expires };
        }
        otherwise(expires)
    }
}

#[cfg(test)]
mod tests {
    use super::{Basis, ConfigTime, NodeFacts, RunConfig};

    const MINUTE: i64 = 60_000;

    /// With an interval of five minutes what begins at 0 expires at ten.
    const fn config(begin: i64) -> ConfigTime {
        let interval = 300;
        ConfigTime {
            begin: begin * MINUTE,
            interval,
        }
    }

    fn facts(run: Option<(i64, RunConfig)>) -> NodeFacts {
        NodeFacts {
            enabled: true,
            reports_disabled: false,
            current: Some(config(100)),
            oldest: Some(config(0)),
            run: run.map(|(minute, config)| (minute * MINUTE, config)),
        }
    }

    fn check(facts: NodeFacts, last: i64, holds: Basis, then: Basis) {
        let last = last * MINUTE;
        assert_eq!(Basis::decide(&facts, last), holds);
        assert_eq!(Basis::decide(&facts, last + 1), then);
    }

    const fn until(minute: i64) -> i64 {
        minute * MINUTE
    }

    #[test]
    fn rows_0_to_4() {
        let none = facts(None);
        let ignored = NodeFacts {
            enabled: false,
            ..facts(Some((100, RunConfig::NoId)))
        };
        assert_eq!(Basis::decide(&ignored, 0), Basis::Ignored);
        let unknown = NodeFacts {
            current: None,
            ..none
        };
        assert_eq!(Basis::decide(&unknown, 0), Basis::NoRunNoExpectedReport);
        let disabled = NodeFacts {
            reports_disabled: true,
            ..none
        };
        assert_eq!(
            Basis::decide(&disabled, until(1000)),
            Basis::ReportsDisabled
        );
        let no_report = Basis::NoReport { since: until(110) };
        check(none, 110, Basis::Pending { until: until(110) }, no_report);
    }

    #[test]
    fn rows_5_to_8() {
        let no_config = NodeFacts {
            current: None,
            ..facts(Some((100, RunConfig::NoId)))
        };
        assert_eq!(Basis::decide(&no_config, 0), Basis::NoExpectedReport);
        // The run's time decides, not the clock.
        let pending = Basis::Pending { until: until(110) };
        assert_eq!(
            Basis::decide(&facts(Some((10, RunConfig::NoId))), until(999)),
            pending
        );
        let later = facts(Some((11, RunConfig::NoId)));
        assert_eq!(Basis::decide(&later, until(11)), Basis::UnexpectedNoVersion);
        let young = |minute| NodeFacts {
            oldest: Some(config(200)),
            ..facts(Some((minute, RunConfig::NoId)))
        };
        assert_eq!(Basis::decide(&young(110), until(999)), pending);
        let no_report = Basis::NoReport { since: until(110) };
        assert_eq!(Basis::decide(&young(111), until(0)), no_report);
        let unknown = facts(Some((120, RunConfig::Unknown)));
        let holds = Basis::UnexpectedUnknownVersion { until: until(130) };
        check(unknown, 130, holds, Basis::NoReport { since: until(130) });
    }

    #[test]
    fn rows_9_to_14() {
        let open = RunConfig::Open(config(100));
        let no_report = Basis::NoReport { since: until(130) };
        let compliance = Basis::Compliance { until: until(130) };
        check(facts(Some((120, open))), 130, compliance, no_report);
        let ended = RunConfig::Ended {
            config: config(0),
            end: until(100),
        };
        let pending = Basis::PendingRun { until: until(110) };
        let no_report = Basis::NoReport { since: until(110) };
        check(facts(Some((110, ended))), 110, pending, no_report);
        let late = facts(Some((111, ended)));
        assert_eq!(Basis::decide(&late, until(105)), Basis::UnexpectedVersion);
    }
}
