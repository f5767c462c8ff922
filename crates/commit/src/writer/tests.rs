use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;
use crate::Layer;

/// Stock by kind.
type Stock = BTreeMap<u8, u64>;

/// A change of the stock; what would go below nothing is refused.
#[derive(Debug, Clone, Copy)]
enum Request {
    Bring(u8, u64),
    Take(u8, u64),
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Short,
    Stopping,
    Late,
    Failed(&'static str),
}

/// A shop whose commits fail, or are held, as the test wants.
#[derive(Default)]
struct Shop {
    /// Whether each of the next commits fails; then they succeed.
    failing: std::vec::IntoIter<bool>,
    /// Where the shop is out of reach.
    lost: bool,
    /// Says that a commit began, and waits until it may go on.
    held: Option<(Sender<()>, Receiver<()>)>,
    /// What others learned: the stock of a kind after each change.
    told: Arc<Mutex<Vec<(u8, u64)>>>,
}

fn apply(stock: u64, request: Request) -> Result<u64, Refusal> {
    match request {
        Request::Bring(_, more) => Ok(stock + more),
        Request::Take(_, less) => stock.checked_sub(less).ok_or(Refusal::Short),
    }
}

fn kind(request: Request) -> u8 {
    let (Request::Bring(kind, _) | Request::Take(kind, _)) = request;
    kind
}

impl Ledger for Shop {
    type State = Stock;
    type Request = Request;
    type Reply = u64;
    type Refusal = Refusal;
    type Changes = Layer<u8, u64>;
    type Notifications = Vec<(u8, u64)>;
    type Error = &'static str;

    async fn ready(&mut self, model: &Model<Stock>) -> Result<(), &'static str> {
        if self.lost {
            model.change(Stock::clear);
            return Err("lost");
        }
        Ok(())
    }

    fn apply(&mut self, state: &Stock, requests: Vec<Request>) -> Applied<Self> {
        let (mut layer, mut notifications) = (Layer::default(), Vec::new());
        let answers = requests.into_iter().map(|request| {
            let kind = kind(request);
            let stock = layer.get(state, &kind).copied().unwrap_or_default();
            let stock = apply(stock, request)?;
            layer.put(kind, Some(stock));
            notifications.push((kind, stock));
            Ok(stock)
        });
        Applied {
            answers: answers.collect(),
            changes: (!layer.is_empty()).then_some(layer),
            notifications,
        }
    }

    async fn commit(
        &mut self,
        model: &Model<Stock>,
        changes: &Layer<u8, u64>,
    ) -> Result<(), &'static str> {
        // Nobody may see what is not durable.
        let known = self.told.lock().unwrap().clone().into_iter().collect();
        assert_eq!(*model.read(), known);
        assert!(!changes.is_empty());
        if let Some((began, go_on)) = &self.held {
            let _ = began.send(());
            let _ = go_on.recv();
        }
        match self.failing.next() {
            Some(true) => Err("full"),
            _ => Ok(()),
        }
    }

    fn merge(state: &mut Stock, changes: Layer<u8, u64>) {
        changes.merge_into(state);
    }

    fn notify(&mut self, notifications: Vec<(u8, u64)>) {
        self.told.lock().unwrap().extend(notifications);
    }

    fn refusal(why: CommitFailure<'_, &'static str>) -> Refusal {
        match why {
            CommitFailure::Stopping => Refusal::Stopping,
            CommitFailure::Late => Refusal::Late,
            CommitFailure::Failed(error) => Refusal::Failed(error),
        }
    }
}

const LIMITS: Limits = Limits {
    queue: 64,
    batch: 16,
    weight: usize::MAX,
    within: None,
};

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap()
}

async fn started(shop: Shop, limits: Limits) -> Started<Shop> {
    let open = || async { Ok::<_, ()>((shop, Stock::new())) };
    start("shop", runtime(), limits, open).await.unwrap()
}

/// A shop whose every commit waits: what says that one began, and what lets it go on.
fn held() -> (Shop, Receiver<()>, Sender<()>) {
    let (begin, began) = channel();
    let (go_on, going) = channel();
    let shop = Shop {
        held: Some((begin, going)),
        ..Shop::default()
    };
    (shop, began, go_on)
}

fn request() -> impl Strategy<Value = Request> {
    (0_u8..4, 0_u64..10, any::<bool>()).prop_map(|(kind, count, bring)| match bring {
        true => Request::Bring(kind, count),
        false => Request::Take(kind, count),
    })
}

proptest! {
    /// Requests in batches, of which some cannot be committed, answer, leave and tell what
    /// the same requests do one by one, without those of the batches that failed.
    #[test]
    fn batches_do_what_their_requests_do_one_by_one_or_nothing(
        batches in prop::collection::vec((prop::collection::vec(request(), 1..12), any::<bool>()), 1..12),
    ) {
        let failing: Vec<bool> = batches.iter().map(|(_, fails)| *fails).collect();
        let told = Arc::default();
        let (mut naive, mut heard, mut commits) = (Stock::new(), Vec::new(), Vec::new());
        let shop = Shop { told: Arc::clone(&told), ..Shop::default() };
        let counters = Arc::new(Counters::default());
        let (queue, _jobs) = mpsc::channel(1);
        let counted = Requests::<Shop>::new(queue, None, Arc::clone(&counters));
        let mut writer = Writer::new(shop, Model::new(Stock::new()), LIMITS, counters);
        let view = writer.model.view();
        for ((requests, _), fails) in batches.iter().zip(failing) {
            writer.ledger.failing = vec![fails].into_iter();
            let (mut waiting, mut callers) = (Vec::new(), Vec::new());
            for request in requests {
                let (answer, caller) = oneshot::channel();
                waiting.push((*request, answer));
                callers.push(caller);
            }
            runtime().block_on(writer.write(&mut waiting));
            let (mut after, mut notifications, mut expected) = (naive.clone(), Vec::new(), Vec::new());
            for request in requests {
                let stock = after.entry(kind(*request)).or_default();
                let done = apply(*stock, *request);
                if let Ok(new) = done {
                    *stock = new;
                    notifications.push((kind(*request), new));
                }
                expected.push(done);
            }
            let failed = fails && !notifications.is_empty();
            commits.extend((!notifications.is_empty()).then_some(failed));
            if failed {
                expected.fill_with(|| Err(Refusal::Failed("full")));
            } else {
                heard.extend(notifications.iter().copied());
                naive.extend(notifications);
            }
            let answers: Vec<_> = callers.iter_mut().map(|caller| caller.try_recv().unwrap()).collect();
            prop_assert_eq!(answers, expected);
            prop_assert_eq!(&*view.read(), &naive);
            prop_assert_eq!(&*told.lock().unwrap(), &heard);
        }
        let failed = commits.iter().filter(|failed| **failed).count();
        let counts = counted.counts();
        prop_assert_eq!(counts.commits as usize, commits.len() - failed);
        prop_assert_eq!(counts.failed as usize, failed);
    }
}

#[tokio::test]
async fn what_waits_during_a_commit_is_one_transaction_in_order() {
    let (shop, began, go_on) = held();
    let started = started(shop, LIMITS).await;
    let mut callers = JoinSet::new();
    let run = |number: u64| {
        let requests = started.requests.clone();
        async move { (number, requests.run(Request::Bring(1, number)).await) }
    };
    callers.spawn(run(1));
    tokio::task::yield_now().await;
    began.recv().unwrap();
    for number in 2..=10 {
        callers.spawn(run(number));
        tokio::task::yield_now().await;
    }
    assert_eq!(started.requests.counts().queued, 9);
    go_on.send(()).unwrap();
    began.recv().unwrap();
    // The first is durable, and nothing of the others is seen.
    assert_eq!(started.view.read()[&1], 1);
    go_on.send(()).unwrap();
    while let Some(done) = callers.join_next().await {
        let (number, stock) = done.unwrap();
        assert_eq!(stock, Ok((1..=number).sum()));
    }
    let counts = started.requests.counts();
    assert_eq!((counts.requests, counts.commits), (10, 2));
    assert_eq!((counts.largest, counts.queued), (9, 0));
}

#[tokio::test]
async fn a_full_queue_and_a_full_batch_make_callers_wait() {
    let (shop, began, go_on) = held();
    let limits = Limits {
        queue: 4,
        batch: 3,
        ..LIMITS
    };
    let started = started(shop, limits).await;
    let mut callers = JoinSet::new();
    for number in 0..12 {
        let requests = started.requests.clone();
        callers.spawn(async move { requests.run(Request::Bring(1, 1)).await.unwrap() });
        tokio::task::yield_now().await;
        if number == 0 {
            began.recv().unwrap();
        }
    }
    // One is being committed, four wait, seven wait to be let in.
    assert_eq!(started.requests.counts().queued, 4);
    drop(go_on);
    let mut stock: Vec<_> = callers.join_all().await;
    stock.sort_unstable();
    assert_eq!(stock, (1..=12).collect::<Vec<_>>());
    assert_eq!(started.requests.counts().largest, 3);
}

#[tokio::test]
async fn a_batch_ends_where_it_weighs_enough() {
    let (shop, began, go_on) = held();
    let limits = Limits {
        weight: 2,
        ..LIMITS
    };
    let started = started(shop, limits).await;
    let mut callers = JoinSet::new();
    for number in 0..6 {
        let requests = started.requests.clone();
        callers.spawn(async move { requests.run(Request::Bring(1, 1)).await.unwrap() });
        tokio::task::yield_now().await;
        if number == 0 {
            began.recv().unwrap();
        }
    }
    drop(go_on);
    callers.join_all().await;
    assert_eq!(started.requests.counts().largest, 2);
}

#[tokio::test]
async fn who_waits_too_long_is_told_and_the_request_may_be_done() {
    let (shop, began, go_on) = held();
    let within = Some(Duration::from_millis(1));
    let started = started(shop, Limits { within, ..LIMITS }).await;
    let late = started.requests.run(Request::Bring(1, 5)).await;
    assert_eq!(late, Err(Refusal::Late));
    began.recv().unwrap();
    drop(go_on);
    started.requests.stop().await;
    started.ended.await.unwrap_err();
    assert_eq!(started.view.read()[&1], 5);
}

#[tokio::test]
async fn what_was_asked_before_the_stop_is_done_and_nothing_after() {
    let Started {
        requests,
        view,
        ended,
    } = started(Shop::default(), LIMITS).await;
    assert_eq!(requests.run(Request::Bring(1, 5)).await, Ok(5));
    requests.stop().await;
    let after = requests.run(Request::Bring(1, 5)).await;
    assert_eq!(after, Err(Refusal::Stopping));
    ended.await.unwrap_err();
    assert_eq!(view.read()[&1], 5);
}

#[tokio::test]
async fn a_lost_store_refuses_all_until_it_is_there_again() {
    let started = started(Shop::default(), LIMITS).await;
    let bring = || started.requests.run(Request::Bring(1, 5));
    assert_eq!(bring().await, Ok(5));
    started.requests.tend(|shop| shop.lost = true).await;
    assert_eq!(bring().await, Err(Refusal::Failed("lost")));
    let told = |shop: &mut Shop| {
        shop.lost = false;
        shop.told = Arc::default();
    };
    started.requests.tend(told).await;
    // What was in memory is what was found.
    assert_eq!(bring().await, Ok(5));
    assert_eq!(started.requests.counts().requests, 2);
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let open = || async { Err::<(Shop, Stock), _>("no shop here") };
    let started = start("shop", runtime(), LIMITS, open).await;
    assert!(matches!(started, Err(StartError::Open("no shop here"))));
}
