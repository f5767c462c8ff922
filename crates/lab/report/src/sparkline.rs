//! Where the values of a small chart lie: one after the other from left to right.

/// The place of a chart, in pixels, and what it shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Left free on every side for the dots at the edges.
    pub(crate) edge: f64,
    /// How many values there is room for.
    pub(crate) count: usize,
    /// The value at the lower edge.
    pub(crate) bottom: f64,
    /// The value at the upper edge, above that at the lower.
    pub(crate) top: f64,
}

impl Frame {
    /// From one value to the next.
    pub(crate) fn step(&self) -> f64 {
        (self.width - 2.0 * self.edge) / (self.count.max(2) - 1) as f64
    }

    /// Where a value is, by its number from 0.
    pub(crate) fn x(&self, at: usize) -> f64 {
        self.edge + self.step() * at as f64
    }

    /// How far down a value is; what lies outside is drawn at the edge.
    pub(crate) fn y(&self, value: f64) -> f64 {
        let share = (value - self.bottom) / (self.top - self.bottom);
        self.height - self.edge - share.clamp(0.0, 1.0) * (self.height - 2.0 * self.edge)
    }
}
