//! Any tree of actions, against what it must come to.

use proptest::prelude::*;

use super::*;

/// How a tree of actions must end, worked out without running anything.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    at: u64,
    /// What failed, in parts.
    failed: Option<Vec<String>>,
    hidden: bool,
    worded: bool,
}

impl End {
    fn good(at: u64) -> Self {
        Self {
            at,
            failed: None,
            hidden: false,
            worded: false,
        }
    }

    fn cancelled(at: u64) -> Self {
        Self {
            failed: Some(vec!["cancelled".into()]),
            hidden: true,
            ..Self::good(at)
        }
    }

    fn joined(at: u64, ends: Vec<Self>) -> Self {
        let failed = ends.iter().any(|end| end.failed.is_some());
        let shown = ends.into_iter().filter(|end| !end.hidden);
        let parts = shown.filter_map(|end| end.failed).flatten().collect();
        Self {
            failed: failed.then_some(parts),
            ..Self::good(at)
        }
    }
}

/// Begun at `from`, and asked to stop at `stop`.
fn expected(action: &Action, from: u64, stop: u64) -> End {
    if stop <= from {
        return End::cancelled(from);
    }
    if let Some(run) = &action.run_action {
        let ends = from + run.args[0].parse::<u64>().unwrap();
        return match run.args[1].as_str() {
            _ if stop < ends => End::cancelled(stop),
            "0" => End::good(ends),
            status => End {
                failed: Some(vec![format!("APP: Exited with status {status}")]),
                worded: true,
                ..End::good(ends)
            },
        };
    }
    if let Some(tried) = &action.try_action {
        return End::good(expected(tried.action.as_deref().unwrap(), from, stop).at);
    }
    if let Some(limited) = &action.timeout_action {
        let inner = limited.action.as_deref().unwrap();
        let limit = from + limited.timeout_ms.unsigned_abs();
        let end = expected(inner, from, stop);
        if stop < limit || end.at < limit {
            return end;
        }
        let end = expected(inner, from, limit);
        let within = go_duration(Duration::from_millis(limited.timeout_ms.unsigned_abs()));
        let mut text = format!("exceeded {within} timeout");
        if let Some(parts) = end.failed.filter(|_| end.worded) {
            text += &format!("; {}", parts.join("; "));
        }
        return End {
            failed: Some(text.split("; ").map(Into::into).collect()),
            worded: true,
            ..End::good(end.at)
        };
    }
    if let Some(serial) = &action.serial_action {
        let mut now = from;
        for action in &serial.actions {
            let end = expected(action, now, stop);
            now = end.at;
            if end.failed.is_some() {
                return end;
            }
            if stop <= now {
                break;
            }
        }
        return End::good(now);
    }
    let (actions, codependent) = match (&action.parallel_action, &action.codependent_action) {
        (Some(parallel), _) => (&parallel.actions, false),
        (None, Some(codependent)) => (&codependent.actions, true),
        (None, None) => unreachable!(),
    };
    let ends = |stop| {
        actions
            .iter()
            .map(move |action| expected(action, from, stop))
    };
    let stop = match codependent {
        true => ends(stop).map(|end| end.at).min().unwrap_or(from).min(stop),
        false => stop,
    };
    let mut each: Vec<End> = actions
        .iter()
        .map(|action| {
            let alone = expected(action, from, u64::MAX);
            // The one that ends first is not asked to.
            match codependent && alone.at <= stop {
                true => alone,
                false => expected(action, from, stop),
            }
        })
        .collect();
    let at = each.iter().map(|end| end.at).max().unwrap_or(from);
    if codependent {
        for end in each.iter_mut().filter(|end| end.failed.is_none()) {
            end.failed = Some(vec!["Codependent step exited".into()]);
        }
    }
    End::joined(at, each)
}

/// Trees whose programs, and limits, last differently long, whichever of them are added up.
fn trees() -> impl Strategy<Value = Action> {
    let leaf = (1..50u64, prop_oneof![Just("0"), Just("1"), Just("2")]);
    let leaf = leaf.prop_map(|(lasts, status)| run(lasts << 21, status));
    leaf.prop_recursive(3, 12, 3, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            some.clone().prop_map(serial),
            some.clone().prop_map(parallel),
            some.prop_map(codependent),
            inner.clone().prop_map(tried),
            (inner, 1..50i64).prop_map(|(inner, limit)| limited(inner, limit << 21)),
        ]
    })
}

/// Gives each program and limit a bit of its own.
fn distinguish(action: &mut Action, next: &mut u32) {
    let mut bit = || {
        let bit = 2_u64 << (*next % 20);
        *next += 1;
        bit
    };
    if let Some(run) = &mut action.run_action {
        let lasts: u64 = run.args[0].parse().unwrap();
        run.args[0] = (lasts + bit()).to_string();
    } else if let Some(limited) = &mut action.timeout_action {
        limited.timeout_ms += i64::try_from(bit()).unwrap();
        distinguish(limited.action.as_mut().unwrap(), next);
    } else if let Some(tried) = &mut action.try_action {
        distinguish(tried.action.as_mut().unwrap(), next);
    }
    for actions in [
        action.serial_action.as_mut().map(|it| &mut it.actions),
        action.parallel_action.as_mut().map(|it| &mut it.actions),
        action.codependent_action.as_mut().map(|it| &mut it.actions),
    ] {
        let actions = actions.into_iter().flatten();
        actions.for_each(|action| distinguish(action, next));
    }
}

proptest! {
    #[test]
    fn a_tree_ends_when_and_as_its_parts_say(
        mut tree in trees(),
        stop in prop::option::of(0..1u64 << 28),
    ) {
        distinguish(&mut tree, &mut 0);
        // Odd, so that nothing ends in the same moment.
        let stop = stop.map(|stop| stop << 1 | 1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let seen = runtime.block_on(async { contain(&lrp(tree.clone()), Fake::new(), stop).await });
        let expected = expected(&tree, 0, stop.unwrap_or(u64::MAX));
        prop_assert_eq!(seen.ended, expected.at);
        let parts = |text: &str| {
            let mut parts: Vec<String> = text.split("; ").map(Into::into).collect();
            parts.retain(|part| !part.is_empty());
            parts.sort();
            parts
        };
        let wanted = expected.failed.unwrap_or_default().join("; ");
        prop_assert_eq!(parts(seen.text()), parts(&wanted));
        prop_assert!(seen.signs.len() <= 1);
    }
}
