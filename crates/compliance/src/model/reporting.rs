//! How the reports of what belongs together are summed up.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How the reports of a block are summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ReportingLogic {
    /// The sum of all.
    Weighted,
    /// The components of this name, at any depth.
    Focus(String),
    /// The worst component.
    FocusWorst,
    /// The worst status, as often as there are values.
    WorstCaseWeightedSum,
    /// The worst status, once.
    WorstCaseWeightedOne,
    /// None counts.
    Disabled,
}

impl fmt::Display for ReportingLogic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weighted => f.write_str("weighted"),
            Self::Focus(component) => write!(f, "focus:{component}"),
            Self::FocusWorst => f.write_str("focus-worst"),
            Self::WorstCaseWeightedSum => f.write_str("worst-case-weighted-sum"),
            Self::WorstCaseWeightedOne => f.write_str("worst-case-weighted-one"),
            Self::Disabled => f.write_str("disabled"),
        }
    }
}

impl FromStr for ReportingLogic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "weighted" => Ok(Self::Weighted),
            "focus-worst" => Ok(Self::FocusWorst),
            "worst-case-weighted-sum" => Ok(Self::WorstCaseWeightedSum),
            "worst-case-weighted-one" => Ok(Self::WorstCaseWeightedOne),
            "disabled" => Ok(Self::Disabled),
            other => match other.strip_prefix("focus:") {
                Some(component) => Ok(Self::Focus(component.into())),
                None => Err(format!(
                    "unknown reporting mode \"{other}\"; expected weighted, focus:COMPONENT, \
                     focus-worst, worst-case-weighted-sum, worst-case-weighted-one or disabled"
                )),
            },
        }
    }
}

impl Serialize for ReportingLogic {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReportingLogic {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
