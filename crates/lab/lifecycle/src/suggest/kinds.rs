//! Entities of one kind: values that are seen with the same messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::keys::{Group, is_short_number};
use super::order;
use super::read::{Place, Read};

/// Fewest entities of a kind.
pub(super) const FEWEST: usize = 5;
/// And of all values of a group they are at least the so manieth part; fewer are chance.
const PART: usize = 20;
/// A message is a point when this share of the entities shows it.
const SHOWN: f64 = 0.5;
/// And shows it, in the mean, not more often than this.
const TIMES: f64 = 1.5;
/// An entity is of a kind when this share of its messages is the kind's.
const ALIKE: f64 = 0.8;
/// A kind that has this share of its points in a better one tells nothing new.
const TOLD: f64 = 0.7;
/// Most points that are proposed.
const POINTS: usize = 24;
/// Most different sets of messages from which kinds are made.
const SETS: usize = 500;
/// Places of a kind's own must find this share of its lines, to be its key by themselves.
const FOUND: f64 = 0.95;
/// Most places of a key.
const KEYS: usize = 8;
/// A place belongs to one kind when at most this share of its lines is of others.
const FOREIGN: f64 = 0.02;
/// Messages that differ by a number are one when so many times more entities show one of them
/// than several.
const CATEGORY: usize = 50;
/// What the name of a field has in it that says where an entity runs.
const WHERE: [&str; 12] = [
    "cell", "host", "node", "worker", "pod", "zone", "machine", "shard", "rack", "server",
    "region", "member",
];

/// Entities of one kind.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// All places that name these entities and others of the group.
    pub(super) group: Vec<u16>,
    /// Those that are needed.
    pub(super) key: Vec<u16>,
    /// The field that says where an entity ran.
    pub(super) place: Option<u16>,
    /// Messages in order.
    pub(super) points: Vec<u32>,
    pub(super) left_out: Vec<RejectedMessage>,
    /// Values.
    pub(super) members: Vec<u32>,
    /// Whether they are called by short numbers, as anything is.
    is_numbered: bool,
}

/// A message that entities show and that is no point.
#[derive(Debug, Clone, PartialEq)]
pub struct RejectedMessage {
    /// The message.
    pub message: String,
    /// Why.
    pub why: PointRejection,
}

/// Why a message is no point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PointRejection {
    /// It comes so often for an entity.
    Recurs(f64),
    /// This share of the entities shows it.
    Rare(f64),
    /// It comes now before and now after others.
    Unsteady,
    /// There are many points, and next to nothing passes before it.
    Brief,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: i64,
    line: u32,
    times: u32,
}

type Entities = BTreeMap<u32, BTreeMap<u32, Seen>>;

impl Kind {
    /// How much it explains: times of entities at points. A number that anything might have
    /// counts half.
    pub(super) fn explained(&self) -> u64 {
        let all = (self.members.len() * self.points.len()) as u64;
        if self.is_numbered { all / 2 } else { all }
    }

    /// Whether the other kind is this one again, under another name.
    pub(super) fn tells_all_of(&self, other: &Kind) -> bool {
        let points: HashSet<u32> = self.points.iter().copied().collect();
        let told = other.points.iter().filter(|point| points.contains(point));
        self.group != other.group && told.count() as f64 >= TOLD * other.points.len() as f64
    }
}

/// The kinds among what a group of places names.
pub(super) fn of(read: &Read, group: &Group) -> Vec<Kind> {
    let entities = entities(read, group);
    let members: Vec<Vec<u32>> = alike(&entities)
        .into_iter()
        .filter(|members| members.len() >= FEWEST.max(entities.len() / PART))
        .collect();
    let kind_of: HashMap<u32, usize> = members
        .iter()
        .enumerate()
        .flat_map(|(kind, members)| members.iter().map(move |value| (*value, kind)))
        .collect();
    let kinds = members.iter().enumerate().filter_map(|(number, members)| {
        let (points, left_out) = points(read, &entities, members);
        if points.len() < 2 {
            return None;
        }
        let short = members
            .iter()
            .filter(|value| is_short_number(read.values.text(**value)));
        Some(Kind {
            group: group.places.clone(),
            key: key(read, group, &points, &kind_of, number),
            place: place(read, group, &kind_of, number, members.len()),
            is_numbered: short.count() * 2 > members.len(),
            points,
            left_out,
            members: members.clone(),
        })
    });
    kinds.collect()
}

/// What each value shows; in a line, the first place of the group that is there names the
/// entity.
fn entities(read: &Read, group: &Group) -> Entities {
    let rank: HashMap<u16, usize> = group.places.iter().copied().zip(0..).collect();
    let mut entities = Entities::new();
    for line in read.events.chunk_by(|a, b| a.line == b.line) {
        let of_group = line
            .iter()
            .filter_map(|event| Some((*rank.get(&event.place)?, event)));
        let Some((_, event)) = of_group.min_by_key(|(rank, _)| *rank) else {
            continue;
        };
        let new = Seen {
            at: event.at,
            line: event.line,
            times: 0,
        };
        let messages = entities.entry(event.value).or_default();
        let seen = messages.entry(event.message).or_insert(new);
        if (new.at, new.line) < (seen.at, seen.line) {
            (seen.at, seen.line) = (new.at, new.line);
        }
        seen.times += 1;
    }
    with_categories(read, entities)
}

/// "sent to shop 1" and "sent to shop 2" are one message when no entity is sent to both, and
/// "step 1 done" and "step 2 done" are two.
fn with_categories(read: &Read, entities: Entities) -> Entities {
    // By shape: its messages, entities that show one, and those that show several.
    let mut shapes: HashMap<u32, (HashSet<u32>, usize, usize)> = HashMap::new();
    for messages in entities.values() {
        let mut of_shape: HashMap<u32, Vec<u32>> = HashMap::new();
        for message in messages.keys() {
            let shape = read.shapes[*message as usize];
            of_shape.entry(shape).or_default().push(*message);
        }
        for (shape, messages) in of_shape {
            let (all, one, several) = shapes.entry(shape).or_default();
            let count = if messages.len() == 1 { one } else { several };
            *count += 1;
            all.extend(messages);
        }
    }
    let is_category = |shape: &u32| {
        let (messages, one, several) = &shapes[shape];
        messages.len() > 1 && several * CATEGORY <= *one
    };
    let merged = entities.into_iter().map(|(value, messages)| {
        let mut of: BTreeMap<u32, Seen> = BTreeMap::new();
        for (message, seen) in messages {
            let shape = read.shapes[message as usize];
            let message = if is_category(&shape) { shape } else { message };
            let first = of.entry(message).or_insert(Seen { times: 0, ..seen });
            if (seen.at, seen.line) < (first.at, first.line) {
                (first.at, first.line) = (seen.at, seen.line);
            }
            first.times += seen.times;
        }
        (value, of)
    });
    merged.collect()
}

/// Values with nearly the same messages, by kind.
fn alike(entities: &Entities) -> Vec<Vec<u32>> {
    let mut sets: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for (value, messages) in entities {
        let set = messages.keys().copied().collect();
        sets.entry(set).or_default().push(*value);
    }
    let mut sets: Vec<(Vec<u32>, Vec<u32>)> = sets.into_iter().collect();
    // What many entities show most of comes first: a life that was seen to its end.
    sets.sort_by_key(|(set, values)| std::cmp::Reverse(set.len() * values.len()));
    let mut kinds: Vec<(HashSet<u32>, Vec<u32>)> = Vec::new();
    for (number, (set, values)) in sets.into_iter().enumerate() {
        let like = |kind: &HashSet<u32>| {
            let shared = set.iter().filter(|message| kind.contains(message)).count();
            shared as f64 / set.len() as f64
        };
        let best = kinds
            .iter()
            .enumerate()
            .map(|(at, (messages, _))| (like(messages), at))
            .filter(|(like, _)| *like >= ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        match best {
            Some((_, at)) => {
                let (messages, members) = &mut kinds[at];
                // One that goes further than the first of its kind, and no stray line of another.
                if set.len() * 2 > messages.len() {
                    messages.extend(&set);
                }
                members.extend(values);
            }
            None if number < SETS => kinds.push((set.into_iter().collect(), values)),
            None => {}
        }
    }
    kinds.into_iter().map(|(_, members)| members).collect()
}

/// The messages that are points, in order, and those that are not.
fn points(read: &Read, entities: &Entities, members: &[u32]) -> (Vec<u32>, Vec<RejectedMessage>) {
    let mut shown: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    for value in members {
        for (message, seen) in &entities[value] {
            let (entities, times) = shown.entry(*message).or_default();
            *entities += 1;
            *times += u64::from(seen.times);
        }
    }
    let mut left_out = Vec::new();
    let mut leave = |message: u32, why: PointRejection| {
        left_out.push(RejectedMessage {
            message: read.messages.text(message).replace('\0', "…"),
            why,
        });
    };
    let mut candidates = Vec::new();
    for (message, (entities, times)) in shown {
        let share = entities as f64 / members.len() as f64;
        let times = times as f64 / entities as f64;
        if share < SHOWN {
            leave(message, PointRejection::Rare(share));
        } else if times > TIMES {
            leave(message, PointRejection::Recurs(times));
        } else {
            candidates.push(message);
        }
    }
    let times: Vec<order::Times> = members
        .iter()
        .map(|value| {
            let seen = &entities[value];
            let at = |message: &u32| seen.get(message).map(|seen| (seen.at, seen.line));
            candidates.iter().map(at).collect()
        })
        .collect();
    let (mut ordered, unsteady) = order::in_order(&times, candidates.len());
    for message in unsteady {
        leave(candidates[message], PointRejection::Unsteady);
    }
    while ordered.len() > POINTS {
        let gaps = (1..ordered.len() - 1).map(|at| {
            let gap = median_gap(&times, ordered[at - 1], ordered[at]);
            (gap, std::cmp::Reverse(at))
        });
        let Some((_, std::cmp::Reverse(at))) = gaps.min() else {
            break;
        };
        leave(candidates[ordered.remove(at)], PointRejection::Brief);
    }
    let points = ordered
        .into_iter()
        .map(|message| candidates[message])
        .collect();
    (points, left_out)
}

fn median_gap(times: &[order::Times], from: usize, to: usize) -> i64 {
    let gaps = times
        .iter()
        .filter_map(|times| Some(times[to]?.0.saturating_sub(times[from]?.0)));
    let mut gaps: Vec<i64> = gaps.collect();
    gaps.sort_unstable();
    stats::nearest_rank(&gaps, 0.5).unwrap_or_default()
}

/// The fewest places that find the points of this kind's entities: its own if they can, for
/// a place that others have too would bring them in.
fn key(
    read: &Read,
    group: &Group,
    points: &[u32],
    kind_of: &HashMap<u32, usize>,
    kind: usize,
) -> Vec<u16> {
    let points: HashSet<u32> = points.iter().copied().collect();
    let mut found: HashMap<u16, HashSet<(u32, u32)>> = HashMap::new();
    let mut foreign: HashMap<u16, usize> = HashMap::new();
    for event in &read.events {
        if !group.has(event.place) {
            continue;
        }
        if kind_of.get(&event.value) != Some(&kind) {
            *foreign.entry(event.place).or_default() += 1;
        } else if points.contains(&event.message)
            || points.contains(&read.shapes[event.message as usize])
        {
            let pair = (event.value, event.message);
            found.entry(event.place).or_default().insert(pair);
        }
    }
    let all: HashSet<(u32, u32)> = found.values().flatten().copied().collect();
    let of_its_own = |place: &u16| {
        let (own, others) = (found.get(place), foreign.get(place));
        let others = others.copied().unwrap_or_default() as f64;
        others <= FOREIGN * own.map_or(0, HashSet::len) as f64
    };
    let own: Vec<u16> = group.places.iter().copied().filter(of_its_own).collect();
    let (key, covered) = cover(read, &own, &found);
    if covered as f64 >= FOUND * all.len() as f64 {
        return key;
    }
    cover(read, &group.places, &found).0
}

/// Places, the one that finds most first, until no other finds anything worth it.
fn cover(
    read: &Read,
    places: &[u16],
    found: &HashMap<u16, HashSet<(u32, u32)>>,
) -> (Vec<u16>, usize) {
    let mut key: Vec<u16> = Vec::new();
    let mut covered: HashSet<(u32, u32)> = HashSet::new();
    while key.len() < KEYS {
        let gain = |place: &u16| {
            let pairs = found.get(place).into_iter().flatten();
            pairs.filter(|pair| !covered.contains(pair)).count()
        };
        let is_field = |place: &u16| matches!(read.places[*place as usize], Place::Field(_));
        let best = places
            .iter()
            .map(|place| (gain(place), is_field(place), *place))
            .max_by_key(|(gain, is_field, place)| (*gain, *is_field, std::cmp::Reverse(*place)));
        match best {
            Some((gain, _, place)) if gain * 200 > covered.len() => {
                covered.extend(found.get(&place).into_iter().flatten());
                key.push(place);
            }
            _ => break,
        }
    }
    (key, covered.len())
}

/// The field that says where an entity ran: it is called so, has the same value in all of
/// an entity's lines, and several among all.
fn place(
    read: &Read,
    group: &Group,
    kind_of: &HashMap<u32, usize>,
    kind: usize,
    entities: usize,
) -> Option<u16> {
    let called = |place: u16| match &read.places[place as usize] {
        Place::Field(path) => {
            let path = path.to_lowercase();
            WHERE.iter().any(|part| path.contains(part)) && !group.has(place)
        }
        Place::Word { .. } => false,
    };
    let mut ran: HashMap<u16, HashMap<u32, (u32, bool)>> = HashMap::new();
    for line in read.events.chunk_by(|a, b| a.line == b.line) {
        let named = line
            .iter()
            .find(|event| group.has(event.place) && kind_of.get(&event.value) == Some(&kind));
        let Some(named) = named else { continue };
        for event in line.iter().filter(|event| called(event.place)) {
            let (first, same) = *ran
                .entry(event.place)
                .or_default()
                .entry(named.value)
                .or_insert((event.value, true));
            let same = same && first == event.value;
            if let Some(of) = ran.get_mut(&event.place) {
                of.insert(named.value, (first, same));
            }
        }
    }
    let good = ran.into_iter().filter_map(|(place, of)| {
        let steady = of.values().filter(|(_, same)| *same).count();
        let different: HashSet<u32> = of.values().map(|(value, _)| *value).collect();
        let is_good = of.len() * 2 >= entities
            && steady * 10 >= of.len() * 9
            && different.len() >= 2
            && different.len() * 2 <= entities;
        is_good.then_some((of.len(), std::cmp::Reverse(place)))
    });
    good.max().map(|(_, std::cmp::Reverse(place))| place)
}
