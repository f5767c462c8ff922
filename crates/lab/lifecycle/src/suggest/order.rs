//! Which of the messages that all entities show come in one order, and in which.

/// Entities that are looked at; of more, every so manieth.
const MOST: usize = 2_000;
/// Two points are in order when at least this share of the entities with both says so.
const IN_ORDER: f64 = 0.9;

/// When and in which line an entity showed each of the messages first.
pub(super) type Times = Vec<Option<(i64, u32)>>;

/// The messages (by their number in [`Times`]) in order, without those that come now
/// earlier and now later.
pub(super) fn in_order(entities: &[Times], messages: usize) -> (Vec<usize>, Vec<usize>) {
    let every = entities.len().div_ceil(MOST).max(1);
    let entities: Vec<&Times> = entities.iter().step_by(every).collect();
    // By pair: entities in which the first is before the second, by line where the time is the same.
    let mut before = vec![vec![0_u32; messages]; messages];
    // By pair: entities in which the first has an earlier time.
    let mut earlier = vec![vec![0_u32; messages]; messages];
    let mut both = vec![vec![0_u32; messages]; messages];
    for times in entities {
        let passed: Vec<(usize, (i64, u32))> = times
            .iter()
            .enumerate()
            .filter_map(|(message, at)| Some((message, (*at)?)))
            .collect();
        for (a, first) in &passed {
            for (b, second) in &passed {
                both[*a][*b] += 1;
                before[*a][*b] += u32::from(first < second);
                earlier[*a][*b] += u32::from(first.0 < second.0);
            }
        }
    }
    // Copeland's rule: a message comes after as many others as it mostly follows.
    let follows = |message: usize, among: &[usize]| {
        let after = among
            .iter()
            .filter(|other| before[**other][message] > before[message][**other]);
        after.count()
    };
    let mut kept: Vec<usize> = (0..messages).collect();
    let mut unsteady = Vec::new();
    loop {
        let among = kept.clone();
        kept.sort_by_key(|message| (follows(*message, &among), *message));
        let wrong = |a: usize, b: usize| {
            let share = f64::from(earlier[b][a]) / f64::from(both[a][b].max(1));
            if share > 1.0 - IN_ORDER { share } else { 0.0 }
        };
        let blame = |message: usize| {
            let at = kept
                .iter()
                .position(|kept| *kept == message)
                .unwrap_or_default();
            let earlier: f64 = kept[..at].iter().map(|other| wrong(*other, message)).sum();
            let later: f64 = kept[at + 1..]
                .iter()
                .map(|other| wrong(message, *other))
                .sum();
            earlier + later
        };
        let worst = kept
            .iter()
            .map(|message| (blame(*message), *message))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match worst {
            Some((blame, message)) if blame > 0.0 => {
                kept.retain(|kept| *kept != message);
                unsteady.push(message);
            }
            _ => break,
        }
    }
    (kept, unsteady)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_that_comes_now_earlier_and_now_later_is_left_out() {
        let entities: Vec<Times> = (0..40)
            .map(|n| {
                let anywhere = if n % 2 == 0 { 5 } else { 25 };
                [20, 10, anywhere, 30]
                    .map(|at| Some((at, at as u32)))
                    .to_vec()
            })
            .collect();
        assert_eq!(in_order(&entities, 4), (vec![1, 0, 3], vec![2]));
    }

    #[test]
    fn at_the_same_time_lines_decide_and_missing_ones_do_not_matter() {
        let entity = |at: [Option<(i64, u32)>; 3]| at.to_vec();
        let entities = vec![
            entity([Some((1, 3)), Some((1, 2)), None]),
            entity([Some((1, 13)), None, Some((1, 11))]),
            entity([None, Some((1, 22)), Some((1, 21))]),
        ];
        assert_eq!(in_order(&entities, 3), (vec![2, 1, 0], vec![]));
    }

    proptest! {
        #[test]
        fn a_planted_order_is_found(
            order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
            gaps in prop::collection::vec(prop::collection::vec(1..1_000_i64, 12), 5..40),
            holes in prop::collection::vec(0..12_usize, 5..40),
        ) {
            // Every other one misses a message, so that each is seen with each.
            let entities: Vec<Times> = gaps.iter().zip(&holes).enumerate().map(|(number, (gaps, hole))| {
                let mut times = vec![None; 12];
                let mut at = 0;
                for (message, gap) in order.iter().zip(gaps) {
                    at += gap;
                    times[*message] = (message != hole || number % 2 == 0).then_some((at, 0));
                }
                times
            }).collect();
            prop_assert_eq!(in_order(&entities, 12), (order, vec![]));
        }
    }
}
