//! Settings one by one, under the names that Rudder's API has for them. There are those that are obeyed,
//! and no others.

use serde_json::{Value, json};

use crate::policy::generation::Settings;

/// One of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// What agents do about a difference.
    PolicyMode,
    /// May nodes and directives have another mode?
    PolicyModeOverridable,
    /// What agents report.
    ComplianceMode,
    /// Minutes from one run to the next.
    RunFrequency,
    /// Hour of the day of the first run.
    FirstRunHour,
    /// Minute of the hour of the first run.
    FirstRunMinute,
    /// Minutes over which starts are spread.
    SplayTime,
    /// Identity of this installation, of which queries of groups may ask.
    InstanceId,
}

impl Setting {
    /// All of them, with their names.
    pub const ALL: [(Self, &str); 8] = [
        (Self::PolicyMode, "global_policy_mode"),
        (
            Self::PolicyModeOverridable,
            "global_policy_mode_overridable",
        ),
        (Self::ComplianceMode, "compliance_mode"),
        (Self::RunFrequency, "run_frequency"),
        (Self::FirstRunHour, "first_run_hour"),
        (Self::FirstRunMinute, "first_run_minute"),
        (Self::SplayTime, "splay_time"),
        (Self::InstanceId, "instance_id"),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(setting, _)| *setting)
    }

    /// Its value.
    pub fn of(self, settings: &Settings) -> Value {
        let run = settings.agent_run;
        match self {
            Self::PolicyMode => json!(settings.policy_mode.mode),
            Self::PolicyModeOverridable => json!(settings.policy_mode.overridable),
            Self::ComplianceMode => json!(settings.compliance_mode),
            Self::RunFrequency => json!(run.interval),
            Self::FirstRunHour => json!(run.start_hour),
            Self::FirstRunMinute => json!(run.start_minute),
            Self::SplayTime => json!(run.splay),
            Self::InstanceId => json!(settings.instance_id),
        }
    }

    /// Sets it. That the schedule is one is for [`AgentRun::check`] to say.
    ///
    /// # Errors
    /// The value is not of its kind.
    ///
    /// [`AgentRun::check`]: crate::model::schedule::AgentRun::check
    pub fn set(self, settings: &mut Settings, value: Value) -> serde_json::Result<()> {
        let run = &mut settings.agent_run;
        match self {
            Self::PolicyMode => settings.policy_mode.mode = serde_json::from_value(value)?,
            Self::PolicyModeOverridable => {
                settings.policy_mode.overridable = serde_json::from_value(value)?;
            }
            Self::ComplianceMode => settings.compliance_mode = serde_json::from_value(value)?,
            Self::RunFrequency => run.interval = serde_json::from_value(value)?,
            Self::FirstRunHour => run.start_hour = serde_json::from_value(value)?,
            Self::FirstRunMinute => run.start_minute = serde_json::from_value(value)?,
            Self::SplayTime => run.splay = serde_json::from_value(value)?,
            Self::InstanceId => settings.instance_id = serde_json::from_value(value)?,
        }
        Ok(())
    }

    /// Has it the value that it has when nobody sets it?
    pub fn is_usual(self, settings: &Settings) -> bool {
        self.of(settings) == self.of(&Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_as_it_was_set() {
        let values = [
            json!("audit"),
            json!(false),
            json!("changes-only"),
            json!(60),
            json!(3),
            json!(7),
            json!(20),
            json!("here"),
        ];
        let mut settings = Settings::default();
        for ((setting, name), value) in Setting::ALL.into_iter().zip(&values) {
            assert_eq!(Setting::named(name), Some(setting));
            assert!(setting.is_usual(&settings), "{name}");
            setting.set(&mut settings, value.clone()).unwrap();
            assert!(!setting.is_usual(&settings), "{name}");
            assert!(setting.set(&mut settings, json!({})).is_err(), "{name}");
        }
        // None has changed another.
        let set = Setting::ALL.map(|(setting, _)| setting.of(&settings));
        assert_eq!(set, values);
        assert_eq!(Setting::named("what"), None);
    }
}
