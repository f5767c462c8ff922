//! The changes of a gate, drawn.

use anyhow::{Context as _, Result};
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_15::{FONT_9X15, FONT_9X15_BOLD, FONT_9X18_BOLD};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};
use lab_judgement::{GateJudgement, MetricJudgement, Verdict};

const WIDTH: i32 = 920;
const MARGIN: i32 = 20;
const HEAD: i32 = 64;
/// Of a metric: a line of text above its bar.
const ROW: i32 = 46;
const BAR: i32 = 14;
const AXIS: i32 = 48;
/// A change beyond these is drawn at the edge: nothing is better by more than all of it, and
/// what is five times as slow hides the others.
const FARTHEST: (f64, f64) = (-1.0, 4.0);
/// The most labels that the axis has room for.
const MOST_TICKS: f64 = 9.0;

const PAPER: Rgb888 = Rgb888::new(255, 255, 255);
const INK: Rgb888 = Rgb888::new(32, 33, 36);
const FAINT: Rgb888 = Rgb888::new(189, 193, 198);
const QUIET: Rgb888 = Rgb888::new(95, 99, 104);
const LIMIT: Rgb888 = Rgb888::new(217, 130, 125);
/// Beyond the limit.
const FORBIDDEN: Rgb888 = Rgb888::new(252, 232, 230);

type Letters = MonoTextStyle<'static, Rgb888>;
const TITLE: Letters = MonoTextStyle::new(&FONT_9X18_BOLD, INK);
const NAME: Letters = MonoTextStyle::new(&FONT_9X15_BOLD, INK);
const NOTE: Letters = MonoTextStyle::new(&FONT_9X15, QUIET);

/// A PNG with a row for each metric: the interval of its change as a bar, the estimate as a mark in
/// it, and what lies beyond the limit shaded. One scale holds for all rows.
pub(super) fn png(name: &str, judgement: &GateJudgement) -> Result<Vec<u8>> {
    let metrics = &judgement.metrics;
    let axis = HEAD + ROW * i32::try_from(metrics.len())?;
    let mut canvas = Canvas::new(axis + AXIS);
    let title = format!("{name}: {}", judgement.verdict.in_words());
    canvas.text(&title, (MARGIN, 14), TITLE, Alignment::Left);
    canvas.text(&judgement.sentence, (MARGIN, 36), NOTE, Alignment::Left);
    let scale = Scale::of(metrics);
    for (top, metric) in (HEAD..).step_by(ROW as usize).zip(metrics) {
        canvas.metric(metric, top, &scale);
    }
    canvas.axis(axis, &scale);
    canvas.encoded().context("draw the changes")
}

fn colour(verdict: Verdict) -> Rgb888 {
    match verdict {
        Verdict::Worse => Rgb888::new(197, 34, 31),
        Verdict::NotWorse => Rgb888::new(24, 128, 56),
        Verdict::CannotTell => Rgb888::new(176, 96, 0),
    }
}

/// Shares of change, from better on the left to worse on the right.
struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// Holds nothing, every limit and every interval.
    fn of(metrics: &[MetricJudgement]) -> Self {
        let (mut from, mut to) = (0.0_f64, 0.0_f64);
        for metric in metrics {
            let ends = metric.effect.as_ref().map(|effect| {
                [
                    Some(effect.worse_by_share),
                    effect.low_share,
                    effect.high_share,
                ]
            });
            let ends = ends.into_iter().flatten().flatten();
            for share in ends
                .chain([1.2 * metric.limit_share])
                .filter(|share| share.is_finite())
            {
                from = from.min(share);
                to = to.max(share);
            }
        }
        let (from, to) = (from.max(FARTHEST.0), to.min(FARTHEST.1).max(from + 0.001));
        let room = 0.05 * (to - from);
        Self {
            from: from - room,
            to: to + room,
        }
    }

    /// Where a share lies; one beyond the scale, at its edge.
    fn x(&self, share: f64) -> i32 {
        let along = ((share - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        MARGIN + (along * f64::from(WIDTH - 2 * MARGIN)) as i32
    }

    /// Round shares: 1, 2 or 5 of some power of ten apart.
    fn ticks(&self) -> Vec<f64> {
        let least = (self.to - self.from) / MOST_TICKS;
        let power = 10_f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * power);
        let numbers = (self.from / step).ceil() as i64..=(self.to / step).floor() as i64;
        numbers.map(|number| number as f64 * step).collect()
    }
}

/// Pixels, three bytes each.
struct Canvas {
    height: i32,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(height: i32) -> Self {
        let count = (WIDTH * height) as usize;
        Self {
            height,
            pixels: [PAPER.r(), PAPER.g(), PAPER.b()].repeat(count),
        }
    }

    fn metric(&mut self, metric: &MetricJudgement, top: i32, scale: &Scale) {
        let colour = colour(metric.verdict);
        let name = &metric.metric.name;
        self.text(name, (MARGIN, top), NAME, Alignment::Left);
        let word = metric.verdict.in_words();
        let change = match &metric.effect {
            Some(effect) => format!("{word}: {}", effect.in_words()),
            None => format!("{word}: no change to tell"),
        };
        // Room for the name first: what is said of it may be cut.
        let room = WIDTH - 2 * MARGIN - 9 * name.chars().count() as i32 - 18;
        let change: String = change.chars().take((room / 9).max(0) as usize).collect();
        let style = MonoTextStyle::new(&FONT_9X15, colour);
        self.text(&change, (WIDTH - MARGIN, top), style, Alignment::Right);
        let bar = top + 20;
        let limit = scale.x(metric.limit_share);
        let beyond = (WIDTH - MARGIN - limit, BAR + 4);
        self.fill((limit, bar - 2), beyond, FORBIDDEN);
        self.fill((MARGIN, bar + BAR / 2), (WIDTH - 2 * MARGIN, 1), FAINT);
        self.fill((limit, bar - 2), (1, BAR + 4), LIMIT);
        if let Some(effect) = &metric.effect {
            if let (Some(low), Some(high)) = (effect.low_share, effect.high_share) {
                let (low, high) = (scale.x(low), scale.x(high));
                self.fill((low, bar + 3), ((high - low).max(1), BAR - 6), colour);
            }
            let mark = scale.x(effect.worse_by_share);
            self.fill((mark - 2, bar - 1), (5, BAR + 2), PAPER);
            self.fill((mark - 1, bar), (3, BAR), INK);
        }
        self.fill((scale.x(0.0), bar - 4), (1, BAR + 8), QUIET);
    }

    fn axis(&mut self, top: i32, scale: &Scale) {
        self.fill((MARGIN, top), (WIDTH - 2 * MARGIN, 1), QUIET);
        for share in scale.ticks() {
            let x = scale.x(share);
            self.fill((x, top), (1, 5), QUIET);
            let label = format!("{} %", (share * 1e4).round() / 100.0);
            self.text(&label, (x, top + 7), NOTE, Alignment::Center);
        }
        for (text, x, side) in [
            ("better", MARGIN, Alignment::Left),
            ("worse", WIDTH - MARGIN, Alignment::Right),
            ("shaded: beyond the limit", WIDTH / 2, Alignment::Center),
        ] {
            self.text(text, (x, top + 24), NOTE, side);
        }
    }

    /// One line; what does not fit ends at the edge.
    fn text(&mut self, text: &str, at: (i32, i32), character: Letters, side: Alignment) {
        let style = TextStyleBuilder::new()
            .alignment(side)
            .baseline(Baseline::Top)
            .build();
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let text = Text::with_text_style(&text, at.into(), character, style);
        let Ok(_) = text.draw(self);
    }

    fn fill(&mut self, at: (i32, i32), (width, height): (i32, i32), colour: Rgb888) {
        let size = Size::new(width.max(0) as u32, height.max(0) as u32);
        let area = Rectangle::new(at.into(), size);
        let Ok(()) = area
            .into_styled(PrimitiveStyle::with_fill(colour))
            .draw(self);
    }

    fn encoded(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, WIDTH as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(bytes)
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(WIDTH as u32, self.height as u32)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = std::convert::Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Self::Error> {
        let inside = self.bounding_box();
        for Pixel(at, colour) in pixels.into_iter().filter(|pixel| inside.contains(pixel.0)) {
            let place = 3 * (at.y * WIDTH + at.x) as usize;
            self.pixels[place..place + 3].copy_from_slice(&[colour.r(), colour.g(), colour.b()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lab_judgement::{Direction, Gate, GateSettings, Gated, Metric, Next, PairValues, Unit};
    use stats::SplitMix;

    use super::*;

    /// What a gate of 24 pairs says of metrics that got worse by these shares, with this noise.
    fn judged(metrics: &[(&str, f64, f64)]) -> GateJudgement {
        let gated = metrics.iter().map(|(name, ..)| Gated {
            limit_share: 0.03,
            metric: Metric {
                name: (*name).to_owned(),
                unit: Unit::Seconds,
                direction: Direction::LowerIsBetter,
            },
        });
        let mut gate = Gate::new(GateSettings::new(gated.collect(), 7)).unwrap();
        let mut random = SplitMix::new(5);
        while let Next::Pairs(_) = gate.next() {
            let pairs = metrics.iter().map(|(_, worse, noise)| PairValues {
                base: Some((noise * random.normal()).exp()),
                new: Some((1.0 + worse) * (noise * random.normal()).exp()),
            });
            gate.take(&pairs.collect::<Vec<_>>()).unwrap();
        }
        gate.judgement()
    }

    /// Height and pixels.
    fn decoded(png: &[u8]) -> (i32, Vec<Rgb888>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.width as i32, WIDTH);
        let colours = pixels
            .chunks_exact(3)
            .map(|rgb| Rgb888::new(rgb[0], rgb[1], rgb[2]));
        (info.height as i32, colours.collect())
    }

    /// From where to where a row's interval is drawn in a colour.
    fn bar(pixels: &[Rgb888], row: i32, colour: Rgb888) -> (i32, i32) {
        let y = HEAD + ROW * row + 20 + 3;
        let of = |x: &i32| pixels[(y * WIDTH + x) as usize] == colour;
        let mut columns = (0..WIDTH).filter(of);
        let first = columns.next().unwrap();
        (first, columns.next_back().unwrap_or(first))
    }

    #[test]
    fn an_interval_is_drawn_where_it_lies_in_the_colour_of_its_verdict() {
        let judgement = judged(&[("cpu", 0.2, 0.01), ("wall", 0.0, 0.01)]);
        let [cpu, wall] = &judgement.metrics[..] else {
            panic!("two metrics")
        };
        assert_eq!(
            (cpu.verdict, wall.verdict),
            (Verdict::Worse, Verdict::NotWorse)
        );
        let (height, pixels) = decoded(&png("parse", &judgement).unwrap());
        assert_eq!(height, HEAD + 2 * ROW + AXIS);
        let scale = Scale::of(&judgement.metrics);
        for (row, metric) in [(0, cpu), (1, wall)] {
            let effect = metric.effect.as_ref().unwrap();
            let ends = [effect.low_share, effect.high_share].map(|share| scale.x(share.unwrap()));
            let (from, to) = bar(&pixels, row, colour(metric.verdict));
            assert!(
                (from - ends[0]).abs() <= 1 && (to - ends[1]).abs() <= 1,
                "{from} {to} {ends:?}"
            );
        }
        // What got worse lies beyond the limit, what did not before it.
        let limit = scale.x(0.03);
        assert!(bar(&pixels, 0, colour(Verdict::Worse)).0 > limit);
        assert!(bar(&pixels, 1, colour(Verdict::NotWorse)).1 < limit);
    }

    #[test]
    fn every_share_has_a_place_on_the_scale_and_every_label_its_room() {
        for (worse, noise) in [
            (0.0, 1e-6),
            (0.02, 0.01),
            (0.5, 0.3),
            (900.0, 0.1),
            (-0.999, 0.1),
        ] {
            let judgement = judged(&[("m", worse, noise)]);
            let scale = Scale::of(&judgement.metrics);
            let ticks = scale.ticks();
            assert!((2..=10).contains(&ticks.len()), "{worse}: {ticks:?}");
            let places = [f64::NEG_INFINITY, -1.0, 0.0, 0.03, 1e6].map(|share| scale.x(share));
            assert!(places.is_sorted() && places[0] >= MARGIN && places[4] <= WIDTH - MARGIN);
        }
    }

    #[test]
    fn any_names_and_any_number_of_metrics_can_be_drawn() {
        let long = "ä\u{1b}[31m𝄞".repeat(100);
        let names: Vec<String> = (0..32).map(|n| format!("{n}{long}")).collect();
        let metrics: Vec<_> = names.iter().map(|name| (name.as_str(), 0.0, 0.2)).collect();
        let (height, _) = decoded(&png(&long, &judged(&metrics)).unwrap());
        assert_eq!(height, HEAD + 32 * ROW + AXIS);
        let nothing = GateJudgement {
            metrics: Vec::new(),
            ..judged(&[("m", 0.0, 0.1)])
        };
        assert_eq!(decoded(&png("", &nothing).unwrap()).0, HEAD + AXIS);
    }
}
