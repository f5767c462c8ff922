//! Where a value is counted. Values below 2048 each have a bin of their own; from
//! there on every power of two has 1024 bins, so a bin is never wider than a
//! thousandth of its values. This is HdrHistogram's own layout for three digits.

/// Bins of one page.
pub(super) const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 10;
/// Highest value that is told apart, in microseconds: one hour.
pub(super) const HIGHEST: u64 = 3_600_000_000;
/// Pages that hold every bin up to [`HIGHEST`].
pub(super) const PAGES: usize = (bin_of(HIGHEST) >> PAGE_BITS) + 1;

/// The bin of a value.
#[inline]
pub(super) const fn bin_of(value: u64) -> usize {
    // Values of the first two pages are their own bins.
    let shift = (u64::BITS - PAGE_BITS - 1).saturating_sub((value | 1).leading_zeros());
    ((shift as usize) << PAGE_BITS) + (value >> shift) as usize
}

/// The lowest and the highest value of a bin.
pub(super) const fn values_of(bin: usize) -> (u64, u64) {
    let shift = (bin >> PAGE_BITS).saturating_sub(1);
    let lowest = ((bin - (shift << PAGE_BITS)) as u64) << shift;
    (lowest, lowest + ((1 << shift) - 1))
}

/// The value that stands for a bin where one number is needed.
pub(super) fn middle_of(bin: usize) -> f64 {
    let (lowest, highest) = values_of(bin);
    (lowest + highest) as f64 / 2.0
}
