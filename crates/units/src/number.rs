//! Decimal numbers, read without loss.

/// Most digits of a number; what has more is no number.
const MOST_DIGITS: usize = 20;

/// A decimal number that is not negative: `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    digits: u128,
    scale: u32,
}

impl Number {
    /// The number at the start of `text`, and how many bytes it takes. Underscores
    /// may stand between the digits before the point.
    pub(super) fn leading(text: &str) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let mut number = Self {
            digits: 0,
            scale: 0,
        };
        let mut seen = 0;
        let mut at = 0;
        let mut point = false;
        while let Some(&byte) = bytes.get(at) {
            let digit_follows = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            match byte {
                b'0'..=b'9' => {
                    seen += 1;
                    number.digits = number.digits * 10 + u128::from(byte - b'0');
                    number.scale += u32::from(point);
                    if seen > MOST_DIGITS {
                        return None;
                    }
                }
                b'_' if seen > 0 && !point && digit_follows => {}
                b'.' if seen > 0 && !point && digit_follows => point = true,
                _ => break,
            }
            at += 1;
        }
        (seen > 0).then_some((number, at))
    }

    pub(super) fn is_whole(self) -> bool {
        self.digits.is_multiple_of(10_u128.pow(self.scale))
    }

    /// The number times `unit`, rounded to the nearest whole. `unit` is below 2^42,
    /// so nothing overflows.
    pub(super) fn times(self, unit: u128) -> u128 {
        let ten = 10_u128.pow(self.scale);
        (self.digits * unit + ten / 2) / ten
    }

    /// The number times `unit`, when that is whole.
    pub(super) fn exactly_times(self, unit: u128) -> Option<u128> {
        let ten = 10_u128.pow(self.scale);
        let product = self.digits * unit;
        product.is_multiple_of(ten).then(|| product / ten)
    }

    /// A hundredth of the number.
    pub(super) fn percent(self) -> Self {
        Self {
            digits: self.digits,
            scale: self.scale + 2,
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        // Numbers that people write have few digits: both sides are exact, and the
        // division rounds once. So 99.9% is the number nearest to 0.999.
        self.digits as f64 / 10_u128.pow(self.scale) as f64
    }
}
