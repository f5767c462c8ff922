//! Agents of fleets that fall silent: orders to the process that simulates them.

use std::time::Duration;

use fleet::{Order, PATH};
use http::{Method, StatusCode};
use lab_experiment::plan::{self, CopySelector, FaultKind};
use lab_faults::choose::{choose_numbers, part_of};
use net::{Client, ClientError, ClientOptions};

use super::Faults;
use crate::processes::loopback;

/// Longest wait until a fleet has heard an order: it may be busy with a million agents.
const WITHIN: Duration = Duration::from_secs(30);
/// Bytes of its answer.
const ANSWER_BYTES: usize = 64 << 10;

/// Agents that are silent, or are to be.
pub(super) struct Silenced<'a> {
    client: Client,
    fleet: &'a str,
    /// Where the fleet hears.
    address: String,
    order: Order,
    /// Whom it names, in words.
    whom: String,
    /// The number of the order, once it was given.
    number: usize,
}

impl<'a> Silenced<'a> {
    /// Draws who is to be silent.
    pub(super) fn prepare(
        faults: Faults<'a>,
        kind: &'a FaultKind,
        (drawn, turn): (&str, u64),
    ) -> Result<Self, String> {
        let FaultKind::Silence {
            fleet,
            agents,
            who,
            flap,
            back,
        } = kind
        else {
            return Err("it is about no agents".to_owned());
        };
        let draw = |count| choose_numbers(count, *agents, faults.seed, drawn, turn);
        let (numbers, whom) = match who {
            CopySelector::Copy(agent) => (vec![*agent], format!("{fleet}.{agent}")),
            who => {
                let count = match who {
                    CopySelector::Number(number) => *number,
                    CopySelector::Share(share) => u32::try_from(part_of(*share, *agents as usize))
                        .map_err(|error| error.to_string())?,
                    // Of a fleet no probe picks.
                    CopySelector::All
                    | CopySelector::Only
                    | CopySelector::Copy(_)
                    | CopySelector::Probe { .. } => *agents,
                };
                (draw(count), format!("{count} of {agents} of {fleet}"))
            }
        };
        let back = match back {
            plan::Back::AtOnce => fleet::Back::AtOnce,
            plan::Back::InTurn => fleet::Back::InTurn,
        };
        Ok(Self {
            client: Client::new(ClientOptions {
                connect_within: WITHIN,
                answer_within: WITHIN,
                answer_bytes: ANSWER_BYTES,
                ..ClientOptions::default()
            }),
            fleet,
            address: loopback(faults.starting.addresses.port(fleet, 0)),
            order: Order::of(numbers, back, *flap),
            whom,
            number: 0,
        })
    }

    /// Who is to be silent, in words.
    pub(super) fn whom(&self) -> String {
        self.whom.clone()
    }

    /// Gives the order, by this number.
    ///
    /// # Errors
    /// What the fleet said, or that it did not hear.
    pub(super) async fn begin(&mut self, number: usize) -> Result<(), String> {
        self.number = number;
        let order = serde_json::to_vec(&self.order).map_err(|error| error.to_string())?;
        let (status, said) = self
            .request(Method::PUT, order)
            .await
            .map_err(order_error)?;
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("{} answered {status}: {said}", self.fleet)),
        }
    }

    /// Lifts the order; says how that went.
    ///
    /// # Errors
    /// What the fleet said, or that it did not hear.
    pub(super) async fn end(&self) -> Result<String, String> {
        match self.request(Method::DELETE, Vec::new()).await {
            Ok((status, _)) if status.is_success() => Ok("they may speak again".to_owned()),
            Ok((StatusCode::NOT_FOUND, _)) => {
                Ok("the fleet had started anew meanwhile, and nobody was silent".to_owned())
            }
            Ok((status, said)) => Err(format!("{} answered {status}: {said}", self.fleet)),
            Err(ClientError::Connect { .. }) => {
                Ok("the fleet was down, and the order is gone with its process".to_owned())
            }
            Err(error) => Err(order_error(error)),
        }
    }

    async fn request(
        &self,
        method: Method,
        body: Vec<u8>,
    ) -> Result<(StatusCode, String), ClientError> {
        let uri = format!("http://{}{PATH}{}", self.address, self.number);
        let answer = self.client.send(method.as_str(), &uri, [], body).await?;
        let said = String::from_utf8_lossy(&answer.body).trim().to_owned();
        Ok((answer.status, said))
    }
}

fn order_error(error: ClientError) -> String {
    format!("tell the fleet: {error}")
}
