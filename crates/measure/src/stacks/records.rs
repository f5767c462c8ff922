//! What the kernel writes about samples (linux/perf_event.h).

use super::Sampled;

const KIND_LOST: u32 = 2;
const KIND_FORK: u32 = 7;
const KIND_SAMPLE: u32 = 9;
/// Addresses from here on are marks: what follows is the kernel's, or the program's.
const MARKS_FROM: u64 = u64::MAX - 4094;
const MARK_KERNEL: u64 = (-128_i64).cast_unsigned();
const MARK_USER: u64 = (-512_i64).cast_unsigned();
/// Length of what stands before each record.
const HEAD: usize = 8;

/// A stack as it was sampled: addresses, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawStack<'a> {
    /// The process.
    pub pid: u32,
    /// Addresses in the kernel, then those in the program.
    chain: &'a [u8],
}

impl<'a> RawStack<'a> {
    /// The addresses in the kernel, and those in the program; the innermost first.
    pub fn addresses(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut kernel, mut program) = (Vec::new(), Vec::new());
        let mut is_kernel = false;
        for address in self.chain() {
            match address {
                MARK_KERNEL => is_kernel = true,
                MARK_USER => is_kernel = false,
                // Of a hypervisor or its guest: nobody's that we watch.
                MARKS_FROM.. => {}
                _ if is_kernel => kernel.push(address),
                _ => program.push(address),
            }
        }
        (kernel, program)
    }

    /// All addresses with their marks: what tells one stack from another.
    pub fn chain(&self) -> impl Iterator<Item = u64> + 'a {
        let words = self.chain.chunks_exact(8);
        words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
    }
}

/// One record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Sampled(Sampled<'a>),
    Lost(u64),
    Other,
}

/// The first record, and what follows; `None`: there is none that is whole.
pub(super) fn next(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let kind = word32(bytes, 0)?;
    let size = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
    if size < HEAD {
        return None;
    }
    let (record, rest) = bytes.split_at_checked(size)?;
    Some((read(kind, &record[HEAD..]).unwrap_or(Record::Other), rest))
}

/// In the order of the fields that are asked for: address, process and thread, chain.
fn read(kind: u32, body: &[u8]) -> Option<Record<'_>> {
    match kind {
        KIND_SAMPLE => {
            let pid = word32(body, 8)?;
            let count = usize::try_from(word64(body, 16)?).ok()?;
            let chain = body.get(24..)?.get(..count.checked_mul(8)?)?;
            Some(Record::Sampled(Sampled::Stack(RawStack { pid, chain })))
        }
        // Of a thread both are the same.
        KIND_FORK => Some(Record::Sampled(Sampled::Started {
            pid: word32(body, 0)?,
            parent: word32(body, 4)?,
        })),
        KIND_LOST => Some(Record::Lost(word64(body, 8)?)),
        _ => None,
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (HEAD + body.len()) as u16;
        [
            &kind.to_ne_bytes()[..],
            &0_u16.to_ne_bytes(),
            &size.to_ne_bytes(),
            body,
        ]
        .concat()
    }

    fn sample(pid: u32, chain: &[u64]) -> Vec<u8> {
        let mut body = 7_u64.to_ne_bytes().to_vec();
        body.extend([pid.to_ne_bytes(), 9_u32.to_ne_bytes()].concat());
        body.extend((chain.len() as u64).to_ne_bytes());
        body.extend(chain.iter().flat_map(|address| address.to_ne_bytes()));
        record(KIND_SAMPLE, &body)
    }

    #[test]
    fn stacks_are_told_with_the_kernels_part_apart() {
        let chain = [MARK_KERNEL, 1, 2, MARK_USER, 3, 4];
        let mut lost = 5_u64.to_ne_bytes().to_vec();
        lost.extend(12_u64.to_ne_bytes());
        let fork = [43_u32, 42, 43, 42].map(u32::to_ne_bytes).concat();
        let bytes = [
            sample(42, &chain),
            record(KIND_LOST, &lost),
            record(KIND_FORK, &fork),
            record(3, &[0; 8]),
        ]
        .concat();
        let (Record::Sampled(Sampled::Stack(stack)), rest) = next(&bytes).unwrap() else {
            panic!("a stack");
        };
        assert_eq!(stack.pid, 42);
        assert_eq!(stack.addresses(), (vec![1, 2], vec![3, 4]));
        let (record, rest) = next(rest).unwrap();
        assert_eq!(record, Record::Lost(12));
        let (record, rest) = next(rest).unwrap();
        let started = Sampled::Started {
            pid: 43,
            parent: 42,
        };
        assert_eq!(record, Record::Sampled(started));
        let (record, rest) = next(rest).unwrap();
        assert_eq!((record, rest), (Record::Other, &[][..]));
    }

    proptest! {
        #[test]
        fn nothing_panics_and_each_record_is_passed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut rest = bytes.as_slice();
            while let Some((record, after)) = next(rest) {
                if let Record::Sampled(Sampled::Stack(stack)) = record {
                    stack.addresses();
                }
                prop_assert!(after.len() < rest.len());
                rest = after;
            }
        }
    }
}
