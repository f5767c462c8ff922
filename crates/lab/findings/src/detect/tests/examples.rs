use proptest::prelude::*;
use stats::SplitMix;

use super::run::{Alike, served};
use crate::detect::{
    AttemptCounts, ConnectionCounts, GeneratorUse, LoopTurns, Phase, ProcessUse, QueueLevels,
    ResourceUse, SlotLatencies, ThreadUse, connections, exhaustion, generator, growth, handshakes,
    pool, processor, queue, repeats, retries, stalls,
};
use crate::{Chart, Finding, Kind};

type Intervals = Vec<(i64, i64)>;

fn pool_of((inside, waiting): &(Intervals, Intervals)) -> Option<Finding> {
    pool(&Phase {
        system: "bbs",
        name: "acquired→released",
        inside,
        waiting,
    })
}

/// 1,000 at once and a pool of 20 that each keeps for a second, then some that find it empty.
#[test]
fn a_pool_is_told_with_its_evidence() {
    let mut come = vec![0.0; 1000];
    come.extend((0..400).map(|at| 55.0 + 0.05 * f64::from(at)));
    let found = pool_of(&served(&come, 20, 0.0, || 1.0)).unwrap();
    assert_eq!((found.kind, found.chart), (Kind::Pool, Chart::Lifecycle));
    assert_eq!(found.number("level"), Some(20.0));
    assert_eq!(found.number("waiting_max"), Some(980.0));
    assert!((found.effect.value - 49.0 / 70.95).abs() < 1e-6);
    assert!(
        found.sentence.starts_with(
            "acquired→released stood at 20 for 69.1 % of the time while 980 waited: a pool of 20"
        ),
        "{found}"
    );
    assert!(found.effect.low < found.effect.value && found.effect.value < found.effect.high);
}

/// What is even has a level without a limit.
#[test]
fn what_is_even_is_no_pool() {
    let ns = |seconds: f64| (seconds * 1e9) as i64;
    for (gap_s, delay_s, service_s) in [
        (0.001, 0.0101, 0.02),
        (0.01, 0.023, 0.0999),
        (0.1, 0.05, 0.05),
    ] {
        let come = (0..20_000).map(|at| f64::from(at) * gap_s);
        let (inside, waiting) = come
            .map(|at| {
                let begin = ns(at + delay_s);
                ((begin, begin + ns(service_s)), (ns(at), begin))
            })
            .unzip();
        assert_eq!(pool_of(&(inside, waiting)), None, "{gap_s}");
    }
}

/// Two thousand run for good while as many others are prepared.
#[test]
fn a_batch_that_stays_is_no_pool() {
    let second = 1_000_000_000;
    let batch = |from: i64, ready: i64| {
        (0..2000).map(move |at| ((ready + at, 300 * second), (from, ready + at)))
    };
    let (inside, waiting) = batch(0, second)
        .chain(batch(10 * second, 60 * second))
        .unzip();
    assert_eq!(pool_of(&(inside, waiting)), None);
}

#[test]
fn nothing_is_said_about_nothing() {
    assert_eq!(pool_of(&(Vec::new(), Vec::new())), None);
    assert_eq!(pool_of(&(vec![(5, 1)], vec![(0, 0)])), None);
    let no_queue = QueueLevels {
        system: "bbs",
        name: "queue",
        start_s: 0.0,
        period_s: 0.1,
        levels: &[1.0, 2.0, 3.0],
        load: &[],
    };
    assert_eq!(queue(&no_queue), None);
}

/// A thread that is busy while compilers warm up, and one on a machine without a processor to spare.
#[test]
fn a_busy_thread_is_accused_only_where_others_idle() {
    let judge = |cores: &[f64], idle: f64| {
        let idle = vec![idle; cores.len()];
        let threads = [ThreadUse {
            name: "loop",
            cores,
            waited: &[],
        }];
        processor(&ProcessUse {
            system: "bbs",
            process: "bbs",
            start_s: 0.0,
            period_s: 0.1,
            cores,
            threads: &threads,
            idle: &idle,
            outside: &[],
        })
    };
    let busy = vec![0.99; 600];
    assert_eq!(
        judge(&busy, 1.0).map(|found| found.part),
        Some("loop".to_owned())
    );
    assert_eq!(judge(&busy, 0.1), None);
    let mut warms_up = vec![0.4; 600];
    warms_up[..60].fill(1.0);
    assert_eq!(judge(&warms_up, 1.0), None);
}

/// A queue that grows because three times as many come is the load's doing.
#[test]
fn a_queue_that_follows_its_load_is_no_finding() {
    let mut random = SplitMix::new(4);
    let load: Vec<f64> = (0..1200).map(|at| 1.0 + f64::from(at) / 600.0).collect();
    let levels: Vec<f64> = load
        .iter()
        .map(|load| 30.0 * load * load + random.normal())
        .collect();
    let of = |load: &[f64]| {
        queue(&QueueLevels {
            system: "bbs",
            name: "queue",
            start_s: 0.0,
            period_s: 0.1,
            levels: &levels,
            load,
        })
    };
    assert_eq!(of(&load), None);
    assert_eq!(of(&[]).map(|found| found.kind), Some(Kind::Queue));
}

#[test]
fn a_limit_is_near_from_nine_tenths_on_for_three_samples() {
    let judge = |used: &[f64], limit: f64| {
        exhaustion(&ResourceUse {
            system: "router",
            what: "descriptors",
            start_s: 10.0,
            period_s: 0.5,
            used,
            limit,
        })
    };
    let used = [100.0, 930.0, 950.0, 1000.0];
    let found = judge(&used, 1024.0).unwrap();
    assert_eq!((found.from_s, found.to_s), (10.5, 12.0));
    assert_eq!(
        found.to_string(),
        "router had up to 1000 of 1024 descriptors in use, and 90 % or more for 75 % of the time"
    );
    assert_eq!(judge(&used[..3], 1024.0), None);
    assert_eq!(judge(&used, 2048.0), None);
    assert_eq!(judge(&used, 0.0), None);
}

/// Sizes and durations that both grow in time, and have nothing to do with each other but that.
#[test]
fn a_loop_within_a_factor_of_four_or_of_its_own_noise_is_no_finding() {
    let judge = |turns: &[(f64, f64)]| {
        growth(&LoopTurns {
            system: "bbs",
            name: "convergence",
            size_of: "instances",
            span_s: (0.0, 60.0),
            turns,
        })
    };
    let grows = |most: f64| -> Vec<(f64, f64)> {
        (1..=40)
            .map(|turn| {
                let size = 100.0 + (most - 100.0) * f64::from(turn) / 40.0;
                (size, 1e-4 * size)
            })
            .collect()
    };
    assert!(
        judge(&grows(1000.0))
            .unwrap()
            .sentence
            .contains("grows as n:")
    );
    assert_eq!(judge(&grows(300.0)), None);
    let accused = (0..200).filter(|seed| {
        let mut random = SplitMix::new(*seed);
        let mut noise = Alike::new(&mut random, 0.9, 0.4);
        let turns: Vec<(f64, f64)> = (1..=40)
            .map(|turn| (f64::from(turn) * 10.0, noise.next(&mut random)))
            .collect();
        judge(&turns).is_some()
    });
    let accused = accused.count();
    assert!(accused <= 2, "{accused} of 200");
}

/// The same stalls every 2 s, with even arrivals and with three times as many in each.
#[test]
fn stalls_that_come_with_the_load_are_the_loads() {
    let stalled = |at: usize| at % 20 < 2;
    let latency_s: Vec<f64> = (0..600)
        .map(|at| if stalled(at) { 0.2 } else { 0.01 })
        .collect();
    let judge = |more: f64| {
        let arrivals: Vec<f64> = (0..600)
            .map(|at| if stalled(at) { more } else { 100.0 })
            .collect();
        stalls(&SlotLatencies {
            system: "bbs",
            name: "traffic",
            start_s: 0.0,
            slot_s: 0.1,
            latency_s: &latency_s,
            arrivals: &arrivals,
        })
    };
    let found = judge(100.0).unwrap();
    assert_eq!(
        found
            .number("period_s")
            .map(|period| (period * 1e6).round()),
        Some(2e6)
    );
    assert_eq!(judge(300.0), None);
}

#[test]
fn a_server_that_closes_after_ten_requests_is_not_accused() {
    let requests = [200.0; 60];
    let judge = |opened: f64, full: f64| {
        let (opened, full) = ([opened; 60], [full; 60]);
        let counts = ConnectionCounts {
            system: "router",
            client: "traffic",
            start_s: 0.0,
            period_s: 1.0,
            requests: &requests,
            opened: &opened,
            full: &full,
            resumed: &[0.0; 60],
        };
        (
            connections(&counts).is_some(),
            handshakes(&counts).is_some(),
        )
    };
    assert_eq!(judge(20.0, 2.0), (false, false));
    assert_eq!(judge(200.0, 200.0), (true, true));
    assert_eq!(judge(200.0, 0.0), (true, false));
}

/// One stop of a second is the machine's; and lateness without a cause is no accusation.
#[test]
fn a_generator_is_accused_with_a_cause_only() {
    let judge = |late: &[f64], waits: f64, outside: f64| {
        let rows = vec![waits; late.len()];
        generator(&GeneratorUse {
            load: "traffic",
            start_s: 0.0,
            period_s: 1.0,
            sent: &vec![1000.0; late.len()],
            late,
            busiest: &vec![0.5; late.len()],
            waiting_for_processor: &rows,
            at_in_flight_limit: &vec![0.0; late.len()],
            outside: &vec![outside; late.len()],
        })
    };
    let mut once = vec![0.0; 60];
    once[30] = 1000.0;
    assert_eq!(judge(&once, 0.3, 0.0), None);
    assert_eq!(judge(&[100.0; 60], 0.0, 0.0), None);
    let kind = |outside: f64| judge(&[100.0; 60], 0.3, outside).unwrap().kind;
    // The run itself had the processors, or what others had was less than was missed.
    assert_eq!(kind(0.0), Kind::Generator);
    assert_eq!(kind(0.2), Kind::Generator);
    // Others had them: who could not send did nothing wrong.
    assert_eq!(kind(1.6), Kind::Machine);
    let sentence = judge(&[100.0; 60], 0.3, 1.6).unwrap().sentence;
    assert!(
        sentence.ends_with("as processes outside the run took 1.6 cores"),
        "{sentence}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever was recorded, nothing panics, and what is said has an interval around its effect.
    #[test]
    fn any_recording_is_judged(
        values in prop::collection::vec(prop_oneof![
            -1e9f64..1e9, 0.0f64..2.0, Just(0.0), Just(1.0), Just(f64::NAN), Just(f64::INFINITY)
        ], 0..120),
        other in prop::collection::vec(prop_oneof![0.0f64..100.0, Just(0.0)], 0..120),
        intervals in prop::collection::vec((any::<i64>(), any::<i64>()), 0..40),
        period_s in prop_oneof![Just(0.1), Just(0.0), Just(f64::NAN), 0.0f64..3.0],
    ) {
        let (system, start_s) = ("s", 0.0);
        let threads = [ThreadUse { name: "t", cores: &values, waited: &[] }];
        let pairs: Vec<(f64, f64)> = other.iter().copied().zip(values.iter().copied()).collect();
        let counts = ConnectionCounts {
            system, client: "c", start_s, period_s, requests: &other, opened: &values, full: &other, resumed: &values,
        };
        let found = [
            pool(&Phase { system, name: "p", inside: &intervals, waiting: &intervals }),
            processor(&ProcessUse {
                system, process: "p", start_s, period_s, cores: &other, threads: &threads, idle: &values,
                outside: &other,
            }),
            queue(&QueueLevels { system, name: "q", start_s, period_s, levels: &values, load: &other }),
            exhaustion(&ResourceUse { system, what: "w", start_s, period_s, used: &values, limit: 1.0 }),
            growth(&LoopTurns { system, name: "l", size_of: "n", span_s: (0.0, 1.0), turns: &pairs }),
            stalls(&SlotLatencies {
                system, name: "l", start_s, slot_s: period_s, latency_s: &values, arrivals: &other,
            }),
            connections(&counts),
            handshakes(&counts),
            crate::detect::drops(&crate::detect::DatagramCounts {
                system, socket: "s", start_s, period_s, received: &other, dropped: &values,
            }),
            crate::detect::retries(&crate::detect::AttemptCounts {
                system, client: "c", start_s, period_s, requests: &other, attempts: &values,
            }),
            repeats(&AttemptCounts { system, client: "c", start_s, period_s, requests: &other, attempts: &values }),
            generator(&GeneratorUse {
                load: "l", start_s, period_s, sent: &other, late: &values, busiest: &values,
                waiting_for_processor: &other, at_in_flight_limit: &values, outside: &other,
            }),
        ];
        for found in found.into_iter().flatten() {
            prop_assert!(found.effect.low <= found.effect.value && found.effect.value <= found.effect.high, "{:?}", found);
        }
    }
}

/// Recorded from a real server that stood still for 150 ms each second, on a machine that was
/// busy with other things: one answer took 11 ms for no reason of the server's.
#[test]
fn one_slow_answer_does_not_hide_a_rhythm() {
    const MS: [f64; 120] = [
        6.6, 7.8, 8.4, 8.4, 5.3, 5.3, 5.3, 5.4, 5.6, 6.2, 0.0, 140.7, 5.3, 5.4, 5.4, 5.4, 5.3, 5.4,
        8.6, 6.3, 0.0, 147.6, 5.4, 7.3, 8.7, 5.4, 5.4, 8.5, 5.4, 5.3, 0.0, 148.8, 5.3, 5.5, 5.4,
        5.4, 5.3, 8.3, 8.8, 8.9, 0.0, 154.0, 5.5, 8.7, 7.4, 8.0, 8.7, 10.3, 7.1, 5.3, 0.0, 150.2,
        5.4, 5.3, 6.1, 5.9, 6.9, 5.3, 5.3, 5.4, 0.0, 155.6, 5.3, 5.4, 5.4, 5.4, 5.3, 8.0, 6.2, 5.3,
        0.0, 154.3, 5.3, 5.8, 5.3, 5.4, 5.3, 5.2, 8.5, 7.4, 0.0, 153.9, 5.6, 5.3, 5.3, 5.2, 5.3,
        5.3, 5.3, 5.2, 0.0, 153.8, 5.4, 5.3, 5.2, 6.5, 5.3, 5.2, 11.4, 5.3, 0.0, 141.3, 5.2, 5.6,
        7.0, 7.6, 8.6, 7.0, 5.2, 5.3, 0.0, 155.2, 5.3, 5.5, 5.5, 5.3, 5.6, 5.9, 5.2, 6.2,
    ];
    let latency_s = MS.map(|ms| ms / 1000.0);
    let found = stalls(&SlotLatencies {
        system: "server",
        name: "users",
        start_s: 0.0,
        slot_s: 0.1,
        latency_s: &latency_s,
        arrivals: &[],
    });
    let found = found.expect("a rhythm");
    assert_eq!(found.number("stalls"), Some(11.0));
    let period_s = found.number("period_s").unwrap();
    assert!((period_s - 1.0).abs() < 0.01, "{period_s}");
}

/// Recorded as the one above. Other work on the machine made answers late by 10 to 31 ms now and then,
/// once for three tenths of a second right before a stall.
#[test]
fn lateness_right_before_a_stall_is_not_its_beginning() {
    const MS: [u16; 120] = [
        6, 5, 9, 5, 5, 5, 5, 7, 8, 6, 155, 5, 9, 6, 5, 8, 5, 5, 8, 5, 157, 5, 5, 5, 5, 5, 5, 5, 7,
        5, 153, 7, 5, 5, 10, 16, 6, 5, 5, 5, 153, 5, 5, 5, 5, 5, 6, 7, 7, 5, 155, 6, 5, 5, 5, 5, 5,
        7, 6, 6, 156, 6, 13, 5, 5, 5, 5, 5, 8, 6, 154, 7, 9, 6, 10, 5, 5, 5, 5, 5, 152, 6, 8, 8, 8,
        6, 20, 31, 19, 10, 151, 6, 5, 5, 10, 5, 5, 6, 8, 8, 154, 8, 12, 6, 7, 5, 5, 8, 6, 5, 152,
        5, 5, 7, 5, 5, 5, 5, 8, 5,
    ];
    let found = stalls(&SlotLatencies {
        system: "server",
        name: "users",
        start_s: 0.0,
        slot_s: 0.1,
        latency_s: &MS.map(|ms| f64::from(ms) / 1000.0),
        arrivals: &[],
    });
    let found = found.expect("a rhythm");
    assert_eq!(found.number("stalls"), Some(11.0));
    assert_eq!(found.number("period_s"), Some(1.0));
}

/// Recorded from a real thread that never slept, on a machine whose processors others used most of the
/// time. Without them it might have slept.
#[test]
fn a_thread_that_waits_for_processes_outside_of_the_run_is_not_accused() {
    let found = |used: f64, waited: f64, (idle, outside): (f64, f64)| {
        let threads = [ThreadUse {
            name: "burner",
            cores: &[used; 20],
            waited: &[waited; 20],
        }];
        processor(&ProcessUse {
            system: "server",
            process: "server",
            start_s: 0.0,
            period_s: 1.0,
            cores: &[used; 20],
            threads: &threads,
            idle: &[idle; 20],
            outside: &[outside; 20],
        })
    };
    let told = found(0.35, 0.64, (0.0, 1.6)).expect("it cannot be told");
    assert_eq!(told.kind, Kind::Machine);
    assert_eq!(
        told.sentence,
        "thread burner of server used 35 % of one processor and waited for it for 64 % more for 100 % of the \
         time while 0 cores idled and processes outside the run took 1.6 cores: the machine's processors were \
         taken by processes outside the run, so whether it is limited cannot be told"
    );
    // One that sleeps for the rest of the time is not limited, whoever has the processors.
    assert_eq!(found(0.35, 0.3, (0.0, 1.6)), None);
    // One that had its processor whole is, whoever has the others.
    let whole = found(0.97, 0.02, (0.0, 1.0)).expect("a limit");
    assert_eq!(whole.kind, Kind::Processor);
    assert!(
        whole
            .sentence
            .contains("while 0 cores idled and processes outside the run took 1 core"),
        "{whole}"
    );
    // Nor is anybody else to blame where the run itself has all processors.
    assert_eq!(found(0.97, 0.02, (0.1, 0.05)), None);
    // It may not run where the others are.
    let bound = found(0.35, 0.64, (1.0, 0.0)).expect("a limit");
    assert_eq!(bound.kind, Kind::Processor);
    assert!(
        bound.sentence.starts_with(
            "thread burner of server used 35 % of one processor, and waited for it for 64 % more, for"
        ),
        "{bound}"
    );
}

/// Of two processors, one that a process outside of the run never gives away leaves exactly one.
#[test]
fn a_process_that_has_what_others_leave_is_not_said_to_be_allowed_it() {
    let told = |level: f64, idle: f64, outside: f64| {
        let cores: Vec<f64> = (0..20)
            .map(|at| level - 0.005 - 0.001 * f64::from(at % 3))
            .collect();
        let half = [0.5; 20];
        let thread = |name| ThreadUse {
            name,
            cores: &half,
            waited: &[],
        };
        processor(&ProcessUse {
            system: "server",
            process: "server",
            start_s: 0.0,
            period_s: 1.0,
            cores: &cores,
            threads: &[thread("a"), thread("b")],
            idle: &[idle; 20],
            outside: &[outside; 20],
        })
    };
    let found = |idle: f64, outside: f64| told(1.0, idle, outside).map(|found| found.kind);
    assert_eq!(found(1.0, 0.0), Some(Kind::Processor));
    assert_eq!(found(0.0, 1.0), Some(Kind::Machine));
    assert_eq!(found(0.0, 0.0), None);
    // Two of three: that is where the chart has the line.
    let two = told(2.0, 0.0, 1.0).unwrap();
    assert_eq!(two.kind, Kind::Machine);
    assert_eq!(two.number("limit_cores"), Some(2.0));
}

/// Each request of half a minute is sent once and a half; before that nothing was asked for.
#[test]
fn retries_are_told_for_the_time_in_which_they_were() {
    let found = |requests: &[f64], attempts: &[f64]| {
        retries(&AttemptCounts {
            system: "server",
            client: "users",
            start_s: 5.0,
            period_s: 1.0,
            requests,
            attempts,
        })
    };
    let after_silence = |busy: f64| [&[0.0; 20][..], &[busy; 30]].concat();
    let told = found(&after_silence(100.0), &after_silence(150.0)).unwrap();
    // Five seconds are looked at together: the first of them with one that was busy.
    assert_eq!((told.from_s, told.to_s), (21.0, 55.0));
    // Twice eight seconds are no sixteen in a row.
    let twice = |busy: f64| [&[busy; 8][..], &[0.0; 10], &[busy; 8]].concat();
    assert_eq!(found(&twice(100.0), &twice(150.0)), None);
}
