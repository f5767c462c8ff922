//! All cells in a tournament tree by their score for one kind of work.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

/// The cells in order of their zones, so that a zone is a range of places.
pub(super) struct Layout {
    /// Number of the cell by place; places without a cell have [`u32::MAX`].
    cells: Vec<u32>,
    /// Place by number of the cell.
    places: Vec<usize>,
    zones: Vec<Range<usize>>,
    /// Places, a power of two.
    width: usize,
}

impl Layout {
    /// Of cells by their zones, which are numbered from 0.
    pub(super) fn new(zone_of: &[usize], zones: usize) -> Self {
        let width = zone_of.len().next_power_of_two();
        let mut cells: Vec<u32> = (0..).take(zone_of.len()).collect();
        cells.sort_by_key(|&cell| zone_of[cell as usize]);
        let mut places = vec![0; cells.len()];
        let mut ranges: Vec<Range<usize>> = vec![0..0; zones];
        for (place, &cell) in cells.iter().enumerate() {
            places[cell as usize] = place;
            let range = &mut ranges[zone_of[cell as usize]];
            if range.start == range.end {
                range.start = place;
            }
            range.end = place + 1;
        }
        cells.resize(width, u32::MAX);
        Self {
            cells,
            places,
            zones: ranges,
            width,
        }
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Levels of a tournament.
    pub(super) fn height(&self) -> usize {
        self.width.trailing_zeros() as usize + 1
    }

    /// Number of zones.
    pub(super) fn zones(&self) -> usize {
        self.zones.len()
    }

    /// Places of a zone.
    pub(super) fn zone(&self, zone: usize) -> Range<usize> {
        self.zones[zone].clone()
    }
}

/// A cell with its score: the lower score goes first, then the lower number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rank {
    pub(super) score: f64,
    pub(super) cell: u32,
}

impl Rank {
    pub(super) fn is_before(self, other: Self) -> bool {
        (self.score, self.cell) < (other.score, other.cell)
    }

    /// A cell that has no room scores infinity.
    fn has_room(self) -> bool {
        self.score < f64::INFINITY
    }
}

/// A binary tree over the places whose nodes know their best place.
pub(super) struct ScoreTree {
    scores: Vec<f64>,
    /// Best place below each inner node; the root is node 1.
    best: Vec<u32>,
}

impl ScoreTree {
    /// Of scores by number of the cell; infinity: no room.
    pub(super) fn new(layout: &Layout, score: impl Fn(u32) -> f64) -> Self {
        let mut tree = Self {
            scores: vec![f64::INFINITY; layout.width],
            best: vec![0; layout.width],
        };
        tree.renew(layout, score);
        tree
    }

    /// Takes all scores anew.
    pub(super) fn renew(&mut self, layout: &Layout, score: impl Fn(u32) -> f64) {
        for (place, &cell) in layout.cells[..layout.len()].iter().enumerate() {
            self.scores[place] = score(cell);
        }
        for node in (1..layout.width).rev() {
            self.best[node] = self.better(layout, node);
        }
    }

    /// Takes the score of one cell anew.
    pub(super) fn set(&mut self, layout: &Layout, cell: u32, score: f64) {
        let place = layout.places[cell as usize];
        if self.scores[place] == score {
            return;
        }
        self.scores[place] = score;
        let mut node = (place + layout.width) / 2;
        while node > 0 {
            let best = self.better(layout, node);
            // Another one wins above as before.
            if best == self.best[node] && best as usize != place {
                break;
            }
            self.best[node] = best;
            node /= 2;
        }
    }

    /// The better one of the best places of a node's children.
    fn better(&self, layout: &Layout, node: usize) -> u32 {
        let (left, right) = (self.winner(2 * node), self.winner(2 * node + 1));
        let first = self.rank(layout, left);
        if self.rank(layout, right).is_before(first) {
            right as u32
        } else {
            left as u32
        }
    }

    fn winner(&self, node: usize) -> usize {
        let width = self.scores.len();
        if node >= width {
            node - width
        } else {
            self.best[node] as usize
        }
    }

    fn rank(&self, layout: &Layout, place: usize) -> Rank {
        Rank {
            score: self.scores[place],
            cell: layout.cells[place],
        }
    }

    /// The best cell with room in these ranges of places.
    pub(super) fn first(&self, layout: &Layout, ranges: &[Range<usize>]) -> Option<Rank> {
        let mut first: Option<Rank> = None;
        each_node(layout.width, ranges, |node| {
            let rank = self.rank(layout, self.winner(node));
            if first.is_none_or(|first| rank.is_before(first)) {
                first = Some(rank);
            }
        });
        first.filter(|rank| rank.has_room())
    }

    /// All cells with room in these ranges of places, the best one first.
    pub(super) fn in_order<'a>(&'a self, layout: &'a Layout, ranges: &[Range<usize>]) -> Order<'a> {
        let mut order = Order {
            tree: self,
            layout,
            heap: BinaryHeap::new(),
        };
        each_node(layout.width, ranges, |node| order.push(node));
        order
    }
}

/// Calls for the fewest nodes that together cover these ranges of places.
fn each_node(width: usize, ranges: &[Range<usize>], mut call: impl FnMut(usize)) {
    for range in ranges {
        let (mut start, mut end) = (range.start + width, range.end + width);
        while start < end {
            if start % 2 == 1 {
                call(start);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                call(end);
            }
            start /= 2;
            end /= 2;
        }
    }
}

/// Cells of a [`ScoreTree`] in order.
pub(super) struct Order<'a> {
    tree: &'a ScoreTree,
    layout: &'a Layout,
    heap: BinaryHeap<Reverse<Node>>,
}

impl Order<'_> {
    fn push(&mut self, node: usize) {
        let rank = self.tree.rank(self.layout, self.tree.winner(node));
        if rank.has_room() {
            self.heap.push(Reverse(Node { rank, node }));
        }
    }
}

impl Iterator for Order<'_> {
    type Item = Rank;

    fn next(&mut self) -> Option<Rank> {
        let Reverse(Node { rank, mut node }) = self.heap.pop()?;
        // Down to the winner's own leaf; those that it beat on the way come later.
        while node < self.layout.width {
            let winner = self.tree.winner(node);
            node *= 2;
            if self.tree.winner(node) == winner {
                self.push(node + 1);
            } else {
                self.push(node);
                node += 1;
            }
        }
        Some(rank)
    }
}

struct Node {
    rank: Rank,
    node: usize,
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.rank.score.total_cmp(&other.rank.score);
        by_score.then(self.rank.cell.cmp(&other.rank.cell))
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}
