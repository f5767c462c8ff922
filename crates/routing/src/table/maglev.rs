//! Maglev hashing: a table of slots over the endpoints of a route, most of which stay as
//! they are when an endpoint comes or goes (Eisenbud et al., NSDI 2016).

use std::sync::Arc;

use stats::fnv1a;

use super::Endpoint;

/// Slots of a table, a prime: as many as gorouter has (routing-release 99c70b23, 2026-04),
/// however many endpoints there are. A request goes to the same instance through either router.
pub(crate) const SLOTS: usize = 3001;

/// For each slot, the position of its endpoint in `endpoints`. Each endpoint in turn, in
/// the order of their names, takes the next free slot of its own permutation. Of more
/// endpoints than slots, the last ones have none.
pub(super) fn slots(endpoints: &[Arc<Endpoint>]) -> Box<[u32]> {
    const FREE: u32 = u32::MAX;
    let mut order: Vec<usize> = (0..endpoints.len()).collect();
    order.sort_by_key(|at| name(&endpoints[*at]));
    let mut walks: Vec<(u32, usize, usize)> = order
        .into_iter()
        .map(|at| {
            let hash = fnv1a(0, name(&endpoints[at]).bytes());
            let offset = (hash % SLOTS as u64) as usize;
            let skip = (hash % (SLOTS as u64 - 1)) as usize + 1;
            (u32::try_from(at).unwrap_or(FREE), offset, skip)
        })
        .collect();
    let mut slots = vec![FREE; SLOTS];
    let mut free = SLOTS;
    while free > 0 && !walks.is_empty() {
        for (at, slot, skip) in &mut walks {
            if free == 0 {
                break;
            }
            // The skip and the prime number of slots have no common divisor: a walk meets
            // every slot.
            while slots[*slot] != FREE {
                *slot = (*slot + *skip) % SLOTS;
            }
            slots[*slot] = *at;
            free -= 1;
        }
    }
    slots.into()
}

/// What an endpoint is called in the table.
fn name(endpoint: &Endpoint) -> &str {
    if endpoint.instance_id.is_empty() {
        &endpoint.identity
    } else {
        &endpoint.instance_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published FNV-1a hashes of `a` and `b` are 12638187200555641996 and
    /// 12638190499090526629. Modulo 3001 they are 367 and 1754; modulo 3000, and one more, 1997
    /// and 2630.
    #[test]
    fn instances_take_slots_as_in_gorouter() {
        let named = |instance: &str| {
            Arc::new(Endpoint {
                instance_id: instance.into(),
                ..Endpoint::default()
            })
        };
        let slots = slots(&[named("b"), named("a")]);
        assert_eq!(slots.len(), 3001);
        assert_eq!([367, 2364, 1360].map(|slot| slots[slot]), [1, 1, 1]);
        assert_eq!([1754, 1383, 1012].map(|slot| slots[slot]), [0, 0, 0]);
        assert_eq!(slots.iter().filter(|at| **at == 1).count(), 1501);
    }
}
