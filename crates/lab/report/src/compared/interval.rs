//! An effect with its interval, drawn: all metrics on one scale.

use std::fmt::Write as _;

use lab_judgement::Comparison;

/// Size of a drawing in pixels.
const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 18.0;
/// What is more than this share better or worse is drawn at the edge.
const SHARE_MOST: f64 = 1.0;

/// The share at the right edge, which is that at the left with the other sign: what all intervals fit in.
pub(super) fn scale(metrics: &[Comparison]) -> f64 {
    let ends = metrics.iter().flat_map(|found| {
        let effect = found.effect;
        let ends = effect.map_or([None; 2], |effect| [effect.low_share, effect.high_share]);
        ends.into_iter()
            .chain([
                effect.map(|effect| effect.worse_by_share),
                Some(found.limit_share),
            ])
            .flatten()
    });
    let most = ends.map(f64::abs).filter(|share| share.is_finite());
    most.fold(0.01, f64::max).min(SHARE_MOST) * 1.1
}

/// The interval of a metric; nothing without an effect.
pub(super) fn drawn(found: &Comparison, scale: f64) -> String {
    let Some(effect) = found.effect else {
        return String::new();
    };
    let x = |share: f64| (share / scale).clamp(-1.0, 1.0).mul_add(0.5, 0.5) * WIDTH;
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"its interval\">\
         <line class=\"zero\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>\
         <line class=\"limit\" x1=\"{1:.1}\" x2=\"{1:.1}\" y1=\"0\" y2=\"{HEIGHT}\"/>",
        x(0.0),
        x(found.limit_share)
    );
    if let (Some(low), Some(high)) = (effect.low_share, effect.high_share) {
        let (low, high) = (x(low), x(high));
        let _ = write!(
            text,
            "<rect class=\"range\" x=\"{low:.1}\" y=\"5\" width=\"{:.1}\" height=\"8\"/>",
            (high - low).max(1.0)
        );
    }
    let _ = write!(
        text,
        "<circle class=\"best\" cx=\"{:.1}\" cy=\"9\" r=\"2.5\"/></svg>",
        x(effect.worse_by_share)
    );
    text
}
