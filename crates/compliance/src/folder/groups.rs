//! What is wrong with a group that only the folder's file tells: who belongs to it.

use super::Read;
use crate::definitions::Wrong;

pub(super) fn check(read: &Read<'_>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    match (read.has(&[], "query"), read.has(&[], "nodes")) {
        (true, true) => wrong.push(Wrong {
            key: true,
            ..Wrong::at(
                vec!["nodes".into()],
                "a group has a query or nodes, not both; leave one out",
            )
        }),
        (false, false) => {
            let message = "it is not said who belongs to the group; expected query, or nodes";
            wrong.push(Wrong::at(Vec::new(), message));
        }
        _ => {}
    }
    wrong
}
