use super::simulated::{Queue, Work};
use super::*;
use crate::generate::Flow;
use crate::slo::Slo;

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
        for seed in 0..200u64 {
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
            if seed == 0 {
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
            errors[100],
            errors[180],
            bias / 200.0,
            holds[100],
            holds[199],
            widths[100],
            time[100],
            perr.len(),
            perr[perr.len() / 2]
        );
    }
}
