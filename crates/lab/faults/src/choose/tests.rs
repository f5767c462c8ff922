use proptest::prelude::*;

use super::*;

fn cells(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("cell[{n}]")).collect()
}

#[test]
fn named_things_are_those_and_a_wrong_name_is_told() {
    let who = MemberSelector::Named(vec!["cell[2]".into(), "cell[0]".into()]);
    assert_eq!(choose(&who, &cells(3), 1, "kill", 0), Ok(vec![2, 0]));
    let wrong = MemberSelector::Named(vec!["cel[2]".into()]);
    let error = choose(&wrong, &cells(3), 1, "kill", 0).unwrap_err();
    assert!(
        error.to_string().contains("did you mean \"cell[2]\"?"),
        "{error}"
    );
    let twice = MemberSelector::Named(vec!["cell[1]".into(), "cell[1]".into()]);
    let error = choose(&twice, &cells(3), 1, "kill", 0).unwrap_err();
    assert!(matches!(error, ChooseError::Twice { .. }));
}

#[test]
fn every_member_and_none() {
    assert_eq!(
        choose(&MemberSelector::Every, &cells(3), 1, "kill", 0),
        Ok(vec![0, 1, 2])
    );
    let none = choose(&MemberSelector::Every, &[], 1, "kill", 0).unwrap_err();
    assert!(matches!(none, ChooseError::Nobody { .. }));
}

#[test]
fn shares_round_to_the_nearest_and_hit_at_least_one() {
    for (share, of, hit) in [
        (0.1, 100_000, 10_000),
        (0.1, 4, 1),
        (0.1, 14, 1),
        (0.1, 15, 2),
        (0.15, 10, 2),
        (0.35, 10, 4),
        (0.5, 3, 2),
        (1.0, 7, 7),
        (1e-9, 7, 1),
    ] {
        let chosen = choose(&MemberSelector::Share(share), &cells(of), 1, "kill", 0).unwrap();
        assert_eq!(chosen.len(), hit, "{share} of {of}");
    }
    for share in [0.0, -0.1, 1.01, f64::NAN] {
        assert!(choose(&MemberSelector::Share(share), &cells(3), 1, "kill", 0).is_err());
    }
}

#[test]
fn nobody_is_preferred() {
    // Planted: each of ten is hit 3,000 of 10,000 times, with a deviation of 46.
    let mut hits = [0_i32; 10];
    for turn in 0..10_000 {
        for place in choose(&MemberSelector::Count(3), &cells(10), 5, "kill", turn).unwrap() {
            hits[place] += 1;
        }
    }
    assert!(hits.iter().all(|hit| (hit - 3000).abs() < 230), "{hits:?}");
}

proptest! {
    #[test]
    fn a_draw_is_repeatable_and_hits_nobody_twice(
        seed: u64, turn in 0..50_u64, of in 1..200_usize, part in 0.0..1.0_f64,
    ) {
        let count = 1 + (part * (of - 1) as f64) as usize;
        let chosen = choose(&MemberSelector::Count(count), &cells(of), seed, "kill", turn).unwrap();
        prop_assert_eq!(chosen.len(), count);
        prop_assert!(chosen.is_sorted_by(|a, b| a < b) && chosen.iter().all(|it| *it < of));
        prop_assert_eq!(&chosen, &choose(&MemberSelector::Count(count), &cells(of), seed, "kill", turn).unwrap());
        prop_assert!(choose(&MemberSelector::Count(of + 1), &cells(of), seed, "kill", turn).is_err());
    }

    #[test]
    fn neither_order_nor_a_newcomer_changes_who_is_hit(seed: u64, of in 2..60_usize, count in 1..10_usize) {
        let count = count.min(of);
        let members = cells(of);
        let names = |members: &[String]| -> BTreeSet<String> {
            let chosen = choose(&MemberSelector::Count(count), members, seed, "kill", 3).unwrap();
            chosen.into_iter().map(|place| members[place].clone()).collect()
        };
        let hit = names(&members);
        let reversed: Vec<String> = members.iter().rev().cloned().collect();
        prop_assert_eq!(&hit, &names(&reversed));
        let more = names(&cells(of + 1));
        prop_assert!(hit.difference(&more).count() <= 1);
    }
}

#[test]
fn members_without_names_are_drawn_by_the_seed_and_evenly() {
    let hit = choose_numbers(100, 1_000, 7, "silence cells", 0);
    assert_eq!(hit.len(), 100);
    assert!(hit.is_sorted() && hit.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(hit, choose_numbers(100, 1_000, 7, "silence cells", 0));
    for other in [
        choose_numbers(100, 1_000, 8, "silence cells", 0),
        choose_numbers(100, 1_000, 7, "silence others", 0),
        choose_numbers(100, 1_000, 7, "silence cells", 1),
    ] {
        let both = other.iter().filter(|number| hit.contains(number)).count();
        assert!(both < 30, "{both} of 100 are the same");
    }
    // Who is added changes nobody's lot.
    let fewer = choose_numbers(50, 1_000, 7, "silence cells", 0);
    assert!(fewer.iter().all(|number| hit.contains(number)));
    let lower = hit.iter().filter(|number| **number < 500).count();
    assert!(
        (30..=70).contains(&lower),
        "{lower} of 100 are in the lower half"
    );
    assert_eq!(choose_numbers(9, 5, 7, "x", 0), [0, 1, 2, 3, 4]);
    assert_eq!(choose_numbers(0, 5, 7, "x", 0), [0; 0]);
}
