//! One generator on a thread of its own.
//!
//! A generator blocks, and steps do not: they send orders to the thread and wait for
//! answers beside everything else that they wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use lab_load::knee::{Capacity, Event, Holds, Search, search};
use lab_load::{Flow, Generate, GenerateError, Recorded, Segment, Span, Workload, validity};
use tokio::sync::oneshot;

use crate::options::{Generator, Relay, StartGenerator};

/// Stops an order.
#[derive(Clone)]
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    /// Ends the segment under way at once; what is told alone is heard when the span
    /// under way ends.
    now: Arc<dyn Fn() + Send + Sync>,
}

impl Stop {
    pub(crate) fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        (self.now)();
    }

    fn flow(&self) -> Flow {
        match self.requested.load(Ordering::Relaxed) {
            true => Flow::Stop,
            false => Flow::Continue,
        }
    }
}

/// What a generator shall do.
pub(crate) enum Task {
    Segment(Segment),
    /// A search, and the number of its first request.
    Search(Box<Search>, u64),
    /// To see how many of its connections the target has closed.
    Look,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Recorded(Box<Recorded>),
    /// A capacity, the hold that shows best what it means, and the number of the next
    /// request.
    Searched(Box<Capacity>, Option<Box<Recorded>>, u64),
    /// So many connections are closed.
    TurnedAway(u32),
}

/// What is reported while it goes on.
pub(crate) enum Update<'n> {
    Span(&'n Span),
    /// What a search does now, in words.
    Doing(String),
}

/// Takes updates, on the generator's thread.
pub(crate) type OnUpdate = Box<dyn FnMut(Update<'_>) + Send>;

struct Order {
    task: Task,
    stop: Stop,
    on_update: OnUpdate,
    done: oneshot::Sender<Result<Done, GenerateError>>,
}

/// A handle of a generator's thread.
pub(crate) struct GeneratorHandle {
    orders: Sender<Order>,
    now: Arc<dyn Fn() + Send + Sync>,
    pub(crate) relay: Option<Relay>,
    pub(crate) workload: Arc<Workload>,
}

impl GeneratorHandle {
    /// Starts the generator; waits until its connections are open.
    pub(crate) async fn open(
        workload: Workload,
        start: StartGenerator,
    ) -> Result<Self, GenerateError> {
        let workload = Arc::new(workload);
        let (orders, taken) = mpsc::channel();
        let (opened, opens) = oneshot::channel();
        let own = Arc::clone(&workload);
        let thread = std::thread::Builder::new().name("load".to_owned());
        thread
            .spawn(move || match start((*own).clone()) {
                Ok(generator) => {
                    // Whoever waits for it may have given up.
                    let Generator {
                        generate,
                        stop,
                        relay,
                    } = generator;
                    let _ = opened.send(Ok((stop, relay)));
                    work(generate, &own, &taken);
                }
                Err(error) => drop(opened.send(Err(error))),
            })
            .map_err(|error| GenerateError::new("start a thread for the load", error))?;
        let (now, relay) = opens.await.unwrap_or_else(|_| Err(thread_ended()))?;
        Ok(Self {
            orders,
            now: now.into(),
            relay,
            workload,
        })
    }

    /// Gives an order; the answer comes when it is carried out.
    pub(crate) fn order(
        &self,
        task: Task,
        on_update: OnUpdate,
    ) -> (Stop, oneshot::Receiver<Result<Done, GenerateError>>) {
        let (done, answer) = oneshot::channel();
        let stop = Stop {
            requested: Arc::default(),
            now: Arc::clone(&self.now),
        };
        let order = Order {
            task,
            stop: stop.clone(),
            on_update,
            done,
        };
        // A thread that has ended drops the order, and the answer says so.
        let _ = self.orders.send(order);
        (stop, answer)
    }

    /// How many of its connections the target has closed since they were opened.
    pub(crate) async fn turned_away(&self) -> Result<u32, GenerateError> {
        let (_, answer) = self.order(Task::Look, Box::new(|_| ()));
        match answer.await.unwrap_or_else(|_| Err(thread_ended()))? {
            Done::TurnedAway(few) => Ok(few),
            Done::Recorded(_) | Done::Searched(..) => Err(thread_ended()),
        }
    }
}

/// A generator's thread has ended, which it does only when it fails within itself.
pub(crate) fn thread_ended() -> GenerateError {
    GenerateError::new("make a load", "its generator ended")
        .help("this is a mistake in headroom itself; please report it")
}

/// Carries out orders until nobody can give any more.
fn work(mut generator: Box<dyn Generate>, workload: &Workload, orders: &Receiver<Order>) {
    while let Ok(order) = orders.recv() {
        let Order {
            task,
            stop,
            mut on_update,
            done,
        } = order;
        let result = match task {
            Task::Segment(segment) => {
                let recorded = generator.run(&segment, &mut |span| {
                    on_update(Update::Span(span));
                    stop.flow()
                });
                recorded.map(|recorded| Done::Recorded(Box::new(recorded)))
            }
            Task::Search(settings, first) => {
                let mut numbered = Numbered {
                    generator: &mut *generator,
                    next: first,
                };
                searched(&mut numbered, workload, &settings, &stop, &mut on_update)
            }
            Task::Look => generator.turned_away().map(Done::TurnedAway),
        };
        // Whoever waits for it may have given up.
        let _ = done.send(result);
    }
}

fn searched(
    numbered: &mut Numbered<'_>,
    workload: &Workload,
    settings: &Search,
    stop: &Stop,
    on_update: &mut OnUpdate,
) -> Result<Done, GenerateError> {
    let mut holds = Holds::of(numbered);
    let judge = |recorded: &Recorded| -> Vec<String> {
        let judged = settings.slo.judge(recorded);
        let validity = validity::check_for(workload, recorded, &judged);
        validity
            .reasons
            .into_iter()
            .map(|reason| reason.check)
            .collect()
    };
    let capacity = search(&mut holds, settings, &judge, &mut |event| {
        match event {
            Event::Passed(span) => on_update(Update::Span(span)),
            Event::Hold {
                number,
                rate,
                length,
                purpose,
            } => on_update(Update::Doing(format!(
                "search: hold {number} at {} for {} ({purpose})",
                units::show_rate(*rate),
                units::show_seconds(length.as_secs_f64())
            ))),
            Event::Rest { rate, .. } => on_update(Update::Doing(format!(
                "search: let the target rest at {}",
                units::show_rate(*rate)
            ))),
            Event::Held(_) | Event::Believed(_) => {}
        }
        stop.flow()
    })?;
    let shown = holds.best(&capacity);
    Ok(Done::Searched(
        Box::new(capacity),
        shown.map(Box::new),
        numbered.next,
    ))
}

/// Numbers requests on from one hold to the next, so that variables do not repeat.
struct Numbered<'g> {
    generator: &'g mut dyn Generate,
    next: u64,
}

impl Generate for Numbered<'_> {
    fn run(
        &mut self,
        segment: &Segment,
        watch: &mut dyn FnMut(&Span) -> Flow,
    ) -> Result<Recorded, GenerateError> {
        let segment = Segment {
            first: self.next,
            ..segment.clone()
        };
        let recorded = self.generator.run(&segment, watch)?;
        self.next += recorded.total.planned;
        Ok(recorded)
    }
}
