//! How a backend behaves, and the JSON that changes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest delay that can be asked for.
const MOST_DELAY: Duration = Duration::from_secs(3600);

/// What becomes of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is answered at once.
    #[default]
    Ok,
    /// It is answered after the delay.
    Slow,
    /// It is never answered; the connection stays.
    Hang,
    /// The connection is reset.
    Reset,
    /// The connection is closed without an answer.
    Close,
    /// It is answered with the status, and a short body.
    Error,
}

/// How a backend behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// What becomes of a request.
    pub mode: Mode,
    /// For [`Mode::Slow`].
    pub delay: Duration,
    /// For [`Mode::Error`].
    pub status: u16,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            mode: Mode::Ok,
            delay: Duration::from_millis(100),
            status: 503,
        }
    }
}

/// Why a text is no behaviour.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// It is not the JSON that was expected.
    #[error(
        "expected {{\"mode\": \"ok|slow|hang|reset|close|error\", \"delay\": \"50ms\", \"status\": 503}}: {0}"
    )]
    Json(serde_json::Error),
    /// The delay is no length of time.
    #[error("delay: {0}")]
    Delay(units::UnitError),
    /// The delay is too long.
    #[error("delay: expected at most 1h")]
    TooLong,
    /// The status is none of a final answer.
    #[error("status: expected a number from 200 to 599, found {0}")]
    Status(u16),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Message {
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

impl Behaviour {
    /// Reads `{"mode": "slow", "delay": "50ms"}`. What is left out has its default.
    ///
    /// # Errors
    /// What was found instead.
    pub fn from_json(json: &[u8]) -> Result<Self, BehaviourError> {
        let message: Message = serde_json::from_slice(json).map_err(BehaviourError::Json)?;
        let mut behaviour = Self {
            mode: message.mode,
            ..Self::default()
        };
        if let Some(delay) = message.delay {
            behaviour.delay = units::parse_duration(&delay).map_err(BehaviourError::Delay)?;
            if behaviour.delay > MOST_DELAY {
                return Err(BehaviourError::TooLong);
            }
        }
        if let Some(status) = message.status {
            if !(200..=599).contains(&status) {
                return Err(BehaviourError::Status(status));
            }
            behaviour.status = status;
        }
        Ok(behaviour)
    }

    /// The same as JSON, with an end of line.
    pub fn to_json(&self) -> String {
        let message = Message {
            mode: self.mode,
            delay: Some(units::write_duration(self.delay)),
            status: Some(self.status),
        };
        // Plain data without maps: it always is JSON.
        let mut json = serde_json::to_string(&message).unwrap_or_default();
        json.push('\n');
        json
    }
}
