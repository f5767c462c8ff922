use super::simulated::{Queue, Work};
use super::*;
use crate::generate::Flow;
use crate::slo::Slo;

const N: u64 = 60;
#[test]
fn figures() {
    for (name, drift, servers, work) in [
        ("mm1", 0.0, 1, Work::Exponential),
        ("mm1 3", 0.03, 1, Work::Exponential),
        ("mm1 8", 0.08, 1, Work::Exponential),
    ] {
        let (mut covered, mut errors, mut bias, mut holds, mut widths) =
            (0, vec![], 0.0, vec![], vec![]);
        let mut time = vec![];
        let mut pcov = 0;
        let mut perr = vec![];
        for seed in 0..N {
            let mut random = stats::SplitMix::new(seed + 7777);
            let capacity = 800.0 + 800.0 * random.uniform();
            let mut queue = Queue::new(capacity, servers, work, seed);
            queue.drift = drift;
            let truth = capacity - 100f64.ln() / 0.02;
            let settings = Search::new(Slo::parse("p99 < 20ms, errors < 0.1%").unwrap());
            let found =
                search(&mut queue, &settings, &|_| vec![], &mut |_| Flow::Continue).unwrap();
            let knee = found.knee.unwrap();
            covered += usize::from(knee.low <= truth && truth <= knee.high);
            errors.push((knee.rate / truth - 1.0).abs());
            bias += knee.rate / truth - 1.0;
            holds.push(found.points.len());
            widths.push(knee.high / knee.low - 1.0);
            time.push(queue.ran.iter().map(|r| r.1).sum::<f64>());
            if seed == 999 {
                println!("{} {:?} {:?}", found.note, found.usl, found.physical);
                for p in &found.points {
                    println!(
                        "{:.0} {:.0} {:?} {:?} {} {:.1} {} {}",
                        p.rate, p.good_rate, p.p50, p.p99, p.errors, p.in_flight, p.good, p.purpose
                    );
                }
            }
            if let Some(p) = found.physical {
                pcov += usize::from(p.low <= capacity && capacity <= p.high);
                perr.push((p.rate / capacity - 1.0).abs());
            }
        }
        errors.sort_by(f64::total_cmp);
        holds.sort();
        widths.sort_by(f64::total_cmp);
        time.sort_by(f64::total_cmp);
        perr.sort_by(f64::total_cmp);
        println!(
            "{name}: covered {covered}, median err {:.4}, p90 err {:.4}, bias {:.4}, holds {} .. {}, width {:.4}, time {:.0}; phys n {} cov {pcov} err {:.4}",
            errors[N as usize / 2],
            errors[N as usize * 9 / 10],
            bias / N as f64,
            holds[N as usize / 2],
            holds[N as usize - 1],
            widths[N as usize / 2],
            time[N as usize / 2],
            perr.len(),
            perr[perr.len() / 2]
        );
    }
}

#[test]
fn bias() {
    use crate::arrivals::*;
    use crate::{Length, Model, Segment, steady};
    use std::time::Duration;
    for secs in [5u64, 17, 34] {
        let mut counts = [0; 4];
        let mut unsteady = 0;
        let n = 400;
        for seed in 0..n {
            let mut q = Queue::new(1000.0, 1, Work::Exponential, seed);
            let rate = 1000.0 - 100f64.ln() / 0.02;
            let seg = Segment {
                model: Model::Open(Arrivals::Rate {
                    process: Process::Poisson,
                    shape: Shape::Constant(rate),
                }),
                length: Length {
                    duration: Some(Duration::from_secs(secs)),
                    requests: None,
                },
                first: 0,
            };
            let rec = crate::Generate::run(&mut q, &seg, &mut |_| Flow::Continue).unwrap();
            let slo = Slo::parse("p99 < 20ms").unwrap();
            let mut st = steady::find(&rec);
            unsteady += usize::from(st.state == "not-steady");
            counts[0] += usize::from(slo.judge(&steady::part(&rec, &st)).holds == Some(true));
            st.from_s = 0.0;
            counts[1] += usize::from(slo.judge(&steady::part(&rec, &st)).holds == Some(true));
            st.from_s = 1.0;
            counts[2] += usize::from(slo.judge(&steady::part(&rec, &st)).holds == Some(true));
        }
        println!(
            "secs {secs}: mser {} none {} first {} of {n}, unsteady {unsteady}",
            counts[0], counts[1], counts[2]
        );
    }
}
