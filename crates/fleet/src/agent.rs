//! The orders that stand, and what one agent hears of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::order::{Back, Order, OrderEffect, OrderError};

/// Most orders that stand at a time.
const MOST: usize = 100;

/// An order, and since when it stands.
#[derive(Debug, Clone)]
struct StandingOrder {
    order: Arc<Order>,
    since: Instant,
}

type Orders = BTreeMap<u64, StandingOrder>;

/// The orders that stand for a fleet.
#[derive(Debug)]
pub struct Silence {
    agents: u32,
    orders: watch::Sender<Orders>,
}

impl Silence {
    /// No orders, for a fleet of so many agents.
    pub fn of(agents: u32) -> Self {
        let (orders, _) = watch::channel(Orders::new());
        Self { agents, orders }
    }

    /// Lets an order stand from now on, instead of the one of the same number if there is one;
    /// gives how many agents it names.
    ///
    /// # Errors
    /// What is wrong with it. Nothing has changed then.
    pub fn apply(&self, number: u64, order: Order) -> Result<u64, OrderError> {
        let named = order.check(self.agents)?;
        let standing = StandingOrder {
            order: Arc::new(order),
            since: Instant::now(),
        };
        let mut refused = None;
        self.orders.send_if_modified(|orders| {
            if orders.len() >= MOST && !orders.contains_key(&number) {
                refused = Some(OrderError::TooMany(orders.len()));
                return false;
            }
            orders.insert(number, standing);
            true
        });
        refused.map_or(Ok(named), Err)
    }

    /// Lifts an order; says whether it stood.
    pub fn lift(&self, number: u64) -> bool {
        self.orders
            .send_if_modified(|orders| orders.remove(&number).is_some())
    }

    /// How many agents are silent now.
    pub fn silent(&self) -> u64 {
        let orders = self.orders.borrow().clone();
        if orders.is_empty() {
            return 0;
        }
        let now = Instant::now();
        let silent = |agent: &u32| State::of(&orders, *agent, now).back.is_some();
        (0..self.agents).filter(silent).count() as u64
    }

    /// What agent `number` hears.
    pub fn agent(&self, number: u32) -> Agent {
        Agent {
            number,
            orders: self.orders.subscribe(),
            was: None,
        }
    }
}

/// What the orders say of one agent at one moment.
struct State {
    /// It is silent, and comes back so.
    back: Option<Back>,
    /// When this may change by itself.
    until: Option<Instant>,
}

impl State {
    fn of(orders: &Orders, agent: u32, now: Instant) -> Self {
        let mut state = Self {
            back: None,
            until: None,
        };
        for StandingOrder { order, since } in orders.values() {
            let until = match order.effect_on(agent, now.saturating_duration_since(*since)) {
                OrderEffect::Nothing => continue,
                OrderEffect::Silent { until } => {
                    // Of several orders, one that calls it back at once is enough.
                    state.back = match state.back {
                        Some(Back::AtOnce) => Some(Back::AtOnce),
                        Some(Back::InTurn) | None => Some(order.back),
                    };
                    until
                }
                OrderEffect::Speaks { until } => Some(until),
            };
            let until = until.map(|stood| *since + stood);
            state.until = match (state.until, until) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        state
    }
}

/// What one agent hears of the orders to its fleet.
#[derive(Debug, Clone)]
pub struct Agent {
    number: u32,
    orders: watch::Receiver<Orders>,
    /// It was silent when it looked last, and comes back so.
    was: Option<Back>,
}

impl Agent {
    /// Whether it must not speak now.
    pub fn is_silent(&self) -> bool {
        self.state().back.is_some()
    }

    /// Waits until it may speak.
    pub async fn may_speak(&self) {
        let mut heard = self.clone();
        loop {
            // What comes after this look is a change.
            heard.orders.mark_unchanged();
            let state = heard.state();
            if state.back.is_none() {
                return;
            }
            heard.change(state.until).await;
        }
    }

    /// Waits for the end of a silence after which it is to speak at once. One that is not
    /// waited to its end goes on to be watched by the next call.
    pub async fn recalled(&mut self) {
        loop {
            self.orders.mark_unchanged();
            let state = self.state();
            let was = std::mem::replace(&mut self.was, state.back);
            if state.back.is_none() && was == Some(Back::AtOnce) {
                return;
            }
            self.change(state.until).await;
        }
    }

    fn state(&self) -> State {
        State::of(&self.orders.borrow(), self.number, Instant::now())
    }

    /// Waits for other orders, or until `at`.
    async fn change(&mut self, at: Option<Instant>) {
        let by_itself = async {
            match at {
                // Timers of tokio are as fine as a millisecond.
                Some(at) => tokio::time::sleep_until(at + Duration::from_millis(1)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.orders.changed() => {
                // Nobody gives orders any more: those that stand do so for good.
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            () = by_itself => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn order(numbers: std::ops::Range<u32>, back: Back, flap: Option<Duration>) -> Order {
        Order::of(numbers, back, flap)
    }

    /// When within `within` the agent is recalled, in whole seconds from now.
    async fn recalls(agent: &mut Agent, within: Duration) -> Vec<u64> {
        let (began, mut seen) = (Instant::now(), Vec::new());
        while tokio::time::timeout_at(began + within, agent.recalled())
            .await
            .is_ok()
        {
            seen.push(began.elapsed().as_secs());
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_named_is_silent_until_the_order_is_lifted() {
        let silence = Silence::of(10);
        let (hit, other) = (silence.agent(3), silence.agent(4));
        assert_eq!((hit.is_silent(), silence.silent()), (false, 0));
        assert_eq!(silence.apply(1, order(0..4, Back::AtOnce, None)), Ok(4));
        assert_eq!(silence.apply(2, order(3..4, Back::AtOnce, None)), Ok(1));
        assert!(hit.is_silent() && !other.is_silent());
        assert_eq!(silence.silent(), 4);
        other.may_speak().await;
        assert!(silence.lift(1) && !silence.lift(1));
        assert!(hit.is_silent(), "the second order stands");
        let waits = tokio::spawn(async move { hit.may_speak().await });
        tokio::time::sleep(SECOND).await;
        assert!(!waits.is_finished());
        silence.lift(2);
        waits.await.unwrap();
        assert_eq!(silence.silent(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_is_to_come_back_at_once_is_recalled() {
        let silence = Silence::of(10);
        let (mut at_once, mut in_turn, mut other) =
            (silence.agent(0), silence.agent(5), silence.agent(9));
        silence.apply(1, order(0..5, Back::AtOnce, None)).unwrap();
        silence.apply(2, order(5..9, Back::InTurn, None)).unwrap();
        // Each has looked, was interrupted, and looks again.
        for agent in [&mut at_once, &mut in_turn, &mut other] {
            assert!(recalls(agent, SECOND).await.is_empty());
        }
        silence.lift(1);
        silence.lift(2);
        assert_eq!(recalls(&mut at_once, SECOND).await, [0]);
        assert!(recalls(&mut in_turn, SECOND).await.is_empty());
        assert!(recalls(&mut other, SECOND).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_flaps_is_recalled_at_the_end_of_each_turn() {
        let silence = Silence::of(4);
        let flap = Some(Duration::from_secs(5));
        silence.apply(1, order(0..2, Back::AtOnce, flap)).unwrap();
        let mut flapping = silence.agent(1);
        let seen = recalls(&mut flapping, Duration::from_secs(100)).await;
        assert_eq!(seen.len(), 10, "{seen:?}");
        let gaps: Vec<u64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap == 10), "{seen:?}");
        assert!(
            recalls(&mut silence.agent(2), SECOND * 100)
                .await
                .is_empty()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_order_changes_nothing_and_their_number_has_a_bound() {
        let silence = Silence::of(10);
        assert!(silence.apply(1, order(0..11, Back::AtOnce, None)).is_err());
        assert_eq!(silence.silent(), 0);
        for number in 0..100 {
            silence
                .apply(number, order(0..1, Back::AtOnce, None))
                .unwrap();
        }
        let more = silence.apply(100, order(0..9, Back::AtOnce, None));
        assert_eq!(more, Err(OrderError::TooMany(100)));
        // One that stands may be changed.
        assert_eq!(silence.apply(7, order(0..9, Back::AtOnce, None)), Ok(9));
        assert_eq!(silence.silent(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn agents_outlive_whoever_gave_orders() {
        let silence = Silence::of(2);
        silence.apply(1, order(0..1, Back::AtOnce, None)).unwrap();
        let (mut silent, free) = (silence.agent(0), silence.agent(1));
        drop(silence);
        free.may_speak().await;
        assert!(recalls(&mut silent, SECOND).await.is_empty());
        assert!(silent.is_silent());
    }
}
