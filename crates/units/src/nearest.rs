//! The known name that a mistyped one most likely meant.

/// Names longer than this are not compared.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, when it is near enough to be meant: the same
/// but for case, or at most a third of the word's letters (and at most three) away.
/// Of equally near candidates the first wins.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let length = word.chars().count();
    if length > LONGEST {
        return None;
    }
    let limit = (length / 3).clamp(1, 3);
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| {
            let other = candidate.chars().count();
            other <= LONGEST && other.abs_diff(length) <= limit
        })
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|&(far, candidate)| far <= limit && far < candidate.chars().count())
        .min_by_key(|&(far, _)| far)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, dropped, replaced or swapped with their
/// neighbour to make `b` of `a` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let cases = [
            ("", "", 0),
            ("ready", "redy", 1),
            ("count", "cuont", 1),
            ("abc", "xyz", 3),
        ];
        for (a, b, expected) in cases {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let keys = ["name", "ready", "ready_within"];
        assert_eq!(nearest("redy", keys), Some("ready"));
        assert_eq!(nearest("NAME", keys), Some("name"));
        assert_eq!(nearest("ready-within", keys), Some("ready_within"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
