//! Who subscribed to what: a tree of words.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::peer::Peer;
use crate::client::subscription::Queue;

/// Who subscribed.
pub(super) enum Subscriber {
    /// A client.
    Peer(Arc<Peer>),
    /// The process that embeds the endpoint.
    Local(Arc<Queue>),
}

/// A subscription.
pub(super) struct Sub {
    pub(super) subscriber: Subscriber,
    pub(super) subject: Box<[u8]>,
    /// The group of which one member receives each message; empty: none.
    pub(super) group: Box<[u8]>,
    /// The client's name for it.
    pub(super) sid: Box<[u8]>,
    /// Messages that were delivered.
    pub(super) delivered: AtomicU64,
    /// Messages after which it ends.
    pub(super) most: AtomicU64,
}

/// Who receives what is published to a subject.
#[derive(Default)]
pub(super) struct Receivers {
    /// Each of them.
    pub(super) each: Vec<Arc<Sub>>,
    /// One of each group.
    pub(super) groups: Vec<Vec<Arc<Sub>>>,
}

/// All subscriptions of a server.
#[derive(Default)]
pub(super) struct Sublist {
    root: RwLock<Node>,
    generation: AtomicU64,
    length: AtomicU64,
}

#[derive(Default)]
struct Node {
    /// By word; `*` and `>` are words like others here.
    below: HashMap<Box<[u8]>, Node>,
    subs: Vec<Arc<Sub>>,
}

impl Sublist {
    /// Changes with every subscription that comes or goes.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, sub: &Arc<Sub>) {
        let mut root = self.root.write().unwrap_or_else(PoisonError::into_inner);
        let mut node = &mut *root;
        for word in sub.subject.split(|byte| *byte == b'.') {
            node = node.below.entry(word.into()).or_default();
        }
        node.subs.push(Arc::clone(sub));
        self.length.fetch_add(1, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }

    pub(super) fn remove(&self, sub: &Arc<Sub>) {
        let mut root = self.root.write().unwrap_or_else(PoisonError::into_inner);
        if root.remove(&mut sub.subject.split(|byte| *byte == b'.'), sub) {
            self.length.fetch_sub(1, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    pub(super) fn receivers(&self, subject: &[u8]) -> Receivers {
        let mut receivers = Receivers::default();
        let root = self.root.read().unwrap_or_else(PoisonError::into_inner);
        root.collect(Some(subject), &mut receivers);
        receivers
    }
}

impl Node {
    /// `rest` are the words that are left; `None`: none is.
    fn collect(&self, rest: Option<&[u8]>, receivers: &mut Receivers) {
        let Some(rest) = rest else {
            self.subs.iter().for_each(|sub| receivers.add(sub));
            return;
        };
        let (word, rest) = match memchr::memchr(b'.', rest) {
            Some(dot) => (&rest[..dot], Some(&rest[dot + 1..])),
            None => (rest, None),
        };
        for key in [word, b"*"] {
            if let Some(node) = self.below.get(key) {
                node.collect(rest, receivers);
            }
        }
        if let Some(node) = self.below.get(&b">"[..]) {
            node.subs.iter().for_each(|sub| receivers.add(sub));
        }
    }

    /// Whether `sub` was there. Nodes without a use go with it.
    fn remove<'a>(&mut self, words: &mut impl Iterator<Item = &'a [u8]>, sub: &Arc<Sub>) -> bool {
        let Some(word) = words.next() else {
            let before = self.subs.len();
            self.subs.retain(|other| !Arc::ptr_eq(other, sub));
            return self.subs.len() < before;
        };
        let Some(node) = self.below.get_mut(word) else {
            return false;
        };
        let removed = node.remove(words, sub);
        if node.subs.is_empty() && node.below.is_empty() {
            self.below.remove(word);
        }
        removed
    }
}

impl Receivers {
    fn add(&mut self, sub: &Arc<Sub>) {
        if sub.group.is_empty() {
            self.each.push(Arc::clone(sub));
            return;
        }
        let group = self
            .groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| first.group == sub.group));
        match group {
            Some(group) => group.push(Arc::clone(sub)),
            None => self.groups.push(vec![Arc::clone(sub)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subject;

    fn sub(subject: &str, group: &str) -> Arc<Sub> {
        Arc::new(Sub {
            subscriber: Subscriber::Peer(Arc::new(Peer::new(1024))),
            subject: subject.as_bytes().into(),
            group: group.as_bytes().into(),
            sid: Box::default(),
            delivered: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
        })
    }

    fn words(wild: &'static str) -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::string::string_regex(wild).unwrap(), 1..4)
            .prop_map(|words| words.join("."))
    }

    #[test]
    fn members_of_a_group_stay_together() {
        let list = Sublist::default();
        for (subject, group) in [("a.b", "g"), ("a.*", "g"), ("a.>", "h"), ("a.b", "")] {
            list.add(&sub(subject, group));
        }
        let receivers = list.receivers(b"a.b");
        assert_eq!(receivers.each.len(), 1);
        let mut sizes: Vec<_> = receivers.groups.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 2]);
    }

    proptest! {
        #[test]
        fn it_finds_what_a_comparison_with_each_finds(
            patterns in proptest::collection::vec(words("[ab*>]"), 0..20),
            gone in proptest::collection::vec(any::<bool>(), 20),
            subject in words("[ab]"),
        ) {
            let list = Sublist::default();
            let subs: Vec<_> = patterns
                .iter()
                .filter(|pattern| subject::is_subscribable(pattern.as_bytes()))
                .map(|pattern| sub(pattern, ""))
                .collect();
            subs.iter().for_each(|sub| list.add(sub));
            for (sub, _) in subs.iter().zip(&gone).filter(|(_, gone)| **gone) {
                list.remove(sub);
                list.remove(sub);
            }
            let expected = subs
                .iter()
                .zip(&gone)
                .filter(|(sub, gone)| !**gone && subject::matches(&sub.subject, subject.as_bytes()))
                .count();
            prop_assert_eq!(list.receivers(subject.as_bytes()).each.len(), expected);
            subs.iter().for_each(|sub| list.remove(sub));
            prop_assert_eq!(list.len(), 0);
            prop_assert!(list.root.read().unwrap().below.is_empty());
        }
    }
}
