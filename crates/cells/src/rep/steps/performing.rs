//! Performing a tree of actions.

use std::sync::Arc;
use std::time::Duration;

use diego::models::{Action, TimeoutAction};
use net::Shutdown;
use tokio::time::sleep;

use super::{
    CapturedOutput, DEPTH_MAX, Failure, Leaves, LogContext, Outcome, Performing, Ready, Steps,
    go_duration,
};

/// What ends steps that run beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    /// That a step ends is a failure, also when it succeeded.
    pub(super) end_fails: bool,
    /// The others end with the first, also when it succeeded.
    pub(super) with_first: bool,
}

impl<L: Leaves> Steps<'_, L> {
    pub(super) fn perform<'s>(
        &'s self,
        action: &'s Action,
        log_context: LogContext,
        ready: Ready<'s>,
        mut stop: Shutdown,
        depth: usize,
    ) -> Performing<'s> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                let text = format!("actions are nested more than {DEPTH_MAX} deep");
                return Err(Failure::plain(text));
            }
            let depth = depth + 1;
            if is_asked(&mut stop).await {
                return Err(Failure::cancelled());
            }
            if let Some(run) = &action.run_action {
                let log_context = log_context.named(&run.log_source);
                self.leaves.run(run, &log_context, ready, stop).await
            } else if let Some(download) = &action.download_action {
                ready.signal();
                let log_context = log_context.named(&download.log_source);
                self.leaves.download(download, &log_context, stop).await
            } else if let Some(upload) = &action.upload_action {
                ready.signal();
                let log_context = log_context.named(&upload.log_source);
                self.leaves.upload(upload, &log_context, stop).await
            } else if let Some(limited) = &action.timeout_action {
                let log_context = log_context.named(&limited.log_source);
                self.limited(limited, log_context, ready, stop, depth).await
            } else if let Some(tried) = &action.try_action {
                let log_context = log_context.named(&tried.log_source);
                let inner = tried.action.as_deref();
                // Whatever it ends with is fine; that is what it is for.
                let _ = self.inner(inner, log_context, ready, stop, depth).await;
                Ok(())
            } else if let Some(told) = &action.emit_progress_action {
                let source = log_context.named(&told.log_source).source;
                self.write_log(&source, &told.start_message);
                let inner = told.action.as_deref();
                let outcome = self.inner(inner, log_context, ready, stop, depth).await;
                match &outcome {
                    Ok(()) => self.write_log(&source, &told.success_message),
                    Err(failure) if !told.failure_message_prefix.is_empty() => {
                        let why = failure.wording().map(|text| format!(": {text}"));
                        let prefix = &told.failure_message_prefix;
                        self.write_log(&source, &format!("{prefix}{}", why.unwrap_or_default()));
                    }
                    Err(_) => {}
                }
                outcome
            } else if let Some(serial) = &action.serial_action {
                self.serial(&serial.actions, log_context, ready, stop, depth)
                    .await
            } else if let Some(parallel) = &action.parallel_action {
                let log_context = log_context.named(&parallel.log_source);
                let each = self.beside(parallel.actions.iter(), &log_context, ready, &stop, depth);
                together(each).await
            } else if let Some(codependent) = &action.codependent_action {
                let log_context = log_context.named(&codependent.log_source);
                let ends = Ends {
                    end_fails: true,
                    with_first: false,
                };
                codependently(stop, ends, |stop| {
                    self.beside(
                        codependent.actions.iter(),
                        &log_context,
                        ready,
                        &stop,
                        depth,
                    )
                })
                .await
            } else {
                Err(Failure::plain(
                    "an action of no known kind is not supported",
                ))
            }
        })
    }

    fn inner<'s>(
        &'s self,
        action: Option<&'s Action>,
        log_context: LogContext,
        ready: Ready<'s>,
        stop: Shutdown,
        depth: usize,
    ) -> Performing<'s> {
        match action {
            Some(action) => self.perform(action, log_context, ready, stop, depth),
            None => Box::pin(std::future::ready(Err(Failure::plain(
                "an action that should wrap another one is empty",
            )))),
        }
    }

    async fn serial<'s>(
        &'s self,
        actions: &'s [Action],
        log_context: LogContext,
        ready: Ready<'s>,
        mut stop: Shutdown,
        depth: usize,
    ) -> Outcome {
        let mut last = Some(ready);
        for (number, action) in actions.iter().enumerate() {
            let ready = match number + 1 == actions.len() {
                true => last.take().unwrap_or_else(Ready::ignored),
                false => Ready::ignored(),
            };
            self.perform(action, log_context.clone(), ready, stop.clone(), depth)
                .await?;
            // What was asked to stop begins nothing: the step before may only have been tried.
            if is_asked(&mut stop).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Steps to be driven at the same time. Of a check each says for itself what it has to say.
    fn beside<'s>(
        &'s self,
        actions: impl ExactSizeIterator<Item = &'s Action>,
        log_context: &LogContext,
        ready: Ready<'s>,
        stop: &Shutdown,
        depth: usize,
    ) -> Vec<Performing<'s>> {
        let readies = ready.split(actions.len());
        let each = actions.zip(readies).map(|(action, ready)| {
            let (log_context, stop) = (log_context.clone(), stop.clone());
            if !log_context.checks {
                return self.perform(action, log_context, ready, stop, depth);
            }
            let heard = Arc::new(CapturedOutput::default());
            let log_context = LogContext {
                heard: Some(Arc::clone(&heard)),
                ..log_context
            };
            let step = self.perform(action, log_context, ready, stop, depth);
            Box::pin(async move {
                let failure = match step.await {
                    Ok(()) => return Ok(()),
                    Err(failure) => failure,
                };
                let said = heard.text();
                Err(Failure::worded(match said.is_empty() {
                    true => format!("Failed to invoke process: {}", failure.text()),
                    false => said,
                }))
            }) as Performing<'s>
        });
        each.collect()
    }

    async fn limited<'s>(
        &'s self,
        limited: &'s TimeoutAction,
        log_context: LogContext,
        ready: Ready<'s>,
        mut stop: Shutdown,
        depth: usize,
    ) -> Outcome {
        let limit = if limited.timeout_ms > 0 {
            Duration::from_millis(limited.timeout_ms.unsigned_abs())
        } else {
            Duration::from_nanos(limited.deprecated_timeout_ns.max(0).unsigned_abs())
        };
        let (ask, asked) = net::shutdown();
        let mut inner = self.inner(limited.action.as_deref(), log_context, ready, asked, depth);
        tokio::select! {
            outcome = &mut inner => return outcome,
            () = stop.requested() => {
                ask.send_replace(true);
                return inner.await;
            }
            () = sleep(limit) => {}
        }
        ask.send_replace(true);
        let failure = inner.await.err();
        let why = failure.as_ref().and_then(Failure::wording);
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        let limit = go_duration(limit);
        Err(Failure::worded(format!("exceeded {limit} timeout{why}")))
    }

    pub(super) fn write_log(&self, source: &str, text: &str) {
        if !text.is_empty() {
            self.leaves.write_log(source, text);
        }
    }
}

/// Has it been asked to stop?
pub(super) async fn is_asked(stop: &mut Shutdown) -> bool {
    tokio::select! {
        biased;
        () = stop.requested() => true,
        () = std::future::ready(()) => false,
    }
}

/// All at once, to the end of each. Failures are told in the order of the steps, whichever came
/// first.
pub(super) async fn together(steps: Vec<Performing<'_>>) -> Outcome {
    let mut outcomes = all(steps, |_| ()).await;
    outcomes.sort_by_key(|(number, _)| *number);
    let failures: Vec<Failure> = outcomes
        .into_iter()
        .filter_map(|(_, outcome)| outcome.err())
        .collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::joined(failures)),
    }
}

/// All at once; the first that fails ends the others. `steps` takes what asks them to stop.
pub(super) async fn codependently<'s>(
    mut stop: Shutdown,
    ends: Ends,
    steps: impl FnOnce(Shutdown) -> Vec<Performing<'s>>,
) -> Outcome {
    let (ask, asked) = net::shutdown();
    let steps = steps(asked);
    let mut inner = std::pin::pin!(all(steps, |outcome| {
        if outcome.is_err() || ends.end_fails || ends.with_first {
            ask.send_replace(true);
        }
    }));
    let outcomes = tokio::select! {
        outcomes = &mut inner => outcomes,
        () = stop.requested() => {
            ask.send_replace(true);
            inner.await
        }
    };
    let failures: Vec<Failure> = outcomes
        .into_iter()
        .filter_map(|(_, outcome)| match outcome {
            Ok(()) if ends.end_fails => Some(Failure::plain("Codependent step exited")),
            outcome => outcome.err(),
        })
        .collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::joined(failures)),
    }
}

/// Drives steps at the same time; `each` sees the end of every one. Outcomes are in the order
/// of the ends, each with the number of its step.
async fn all(steps: Vec<Performing<'_>>, each: impl Fn(&Outcome)) -> Vec<(usize, Outcome)> {
    let mut steps: Vec<Option<Performing<'_>>> = steps.into_iter().map(Some).collect();
    let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(steps.len());
    std::future::poll_fn(|cx| {
        for (number, slot) in steps.iter_mut().enumerate() {
            if let Some(future) = slot
                && let std::task::Poll::Ready(outcome) = future.as_mut().poll(cx)
            {
                each(&outcome);
                outcomes.push((number, outcome));
                *slot = None;
            }
        }
        if steps.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    outcomes
}
