use std::io::{Read, Write};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

#[test]
fn the_rows_of_the_kernel_are_read() {
    let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                Max open files            1024                 1048576              files     \n\
                Max address space         unlimited            unlimited            bytes     \n";
    assert_eq!(
        parse_limits(text, Resource::Descriptors),
        Some((Some(1024), Some(1_048_576)))
    );
    assert_eq!(
        parse_limits(text, Resource::AddressSpace),
        Some((None, None))
    );
    assert_eq!(parse_limits("", Resource::AddressSpace), None);
    assert_eq!(
        parse_limits("Max open files x y", Resource::Descriptors),
        None
    );
}

#[test]
fn a_limit_is_lowered_inherited_and_put_back() {
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Once it answers, it needs no more memory to begin with.
    child.stdin.as_mut().unwrap().write_all(b"up").unwrap();
    let mut answer = [0; 2];
    let told = child.stdout.as_mut().unwrap();
    told.read_exact(&mut answer).unwrap();
    let process = ProcessId::of(child.id().cast_signed()).unwrap();
    let before = limits(process, Resource::AddressSpace).unwrap().unwrap();
    let lowering = Lowering::to_leave(process, Resource::AddressSpace, 1 << 20);
    let lowering = lowering.unwrap().unwrap();
    lowering.make().unwrap();
    let now = limits(process, Resource::AddressSpace).unwrap().unwrap();
    assert_eq!(now, (Some(lowering.to), before.1));
    assert_eq!(lowering.inherited(process).unwrap(), Some(lowering));
    assert_eq!(lowering.left(), Ok(Some(1 << 20)));
    // It has that little already.
    let again = Lowering::to_leave(process, Resource::AddressSpace, 2 << 20);
    assert_eq!(again, Ok(None));
    lowering.undo().perform().unwrap();
    assert_eq!(limits(process, Resource::AddressSpace), Ok(Some(before)));
    assert_eq!(lowering.inherited(process).unwrap(), None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        Lowering::to_leave(process, Resource::Descriptors, 0),
        Ok(None)
    );
    assert_eq!((lowering.make(), lowering.left()), (Ok(()), Ok(None)));
}

proptest! {
    #[test]
    fn as_many_numbers_are_free_below_the_limit_as_are_left(
        open in prop::collection::btree_set(0..200_u64, 0..100), left in 0..300_u64,
    ) {
        let limit = limit_of_numbers(&open, left);
        let free = (0..limit).filter(|number| !open.contains(number)).count() as u64;
        prop_assert_eq!(free, left);
        // What is open stays open, but no number beyond the limit is given again.
        let highest = open.last().map_or(0, |last| last + 1);
        prop_assert!(limit <= highest + left, "{limit}");
    }
}
