//! Numbers and dates as text, without the formatting machinery.

pub(crate) use wire::http1::write::decimal;

/// Appends a number with zeros in front, `N` digits in all; higher ones are left out.
#[inline]
pub(crate) fn digits<const N: usize>(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Appends bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// A moment in the Gregorian calendar, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calendar {
    pub(crate) year: u64,
    /// 1 to 12.
    pub(crate) month: u64,
    /// 1 to 31.
    pub(crate) day: u64,
    /// 0 is Sunday.
    pub(crate) weekday: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
}

impl Calendar {
    /// The moment so many seconds after 1970 began.
    pub(crate) fn of(seconds: u64) -> Self {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        // Years that begin in March end with the leap day; 400 of them are an era of
        // 146,097 days. 1970-01-01 is day 719,468 of the first.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            weekday: (days + 4) % 7,
            hour: rest / 3_600,
            minute: rest / 60 % 60,
            second: rest % 60,
        }
    }
}

/// Names of the months as HTTP has them.
pub(crate) const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends a moment as HTTP has it (RFC 9110 section 5.6.7): `Sat, 21 Nov 2026 08:17:20 GMT`.
/// `wall` is in nanoseconds since 1970.
pub(crate) fn http_date(wall: u64, out: &mut Vec<u8>) {
    let at = Calendar::of(wall / 1_000_000_000);
    let named = |names: &[&'static str], index: u64| names.get(index as usize).copied();
    out.extend_from_slice(named(&WEEKDAYS, at.weekday).unwrap_or_default().as_bytes());
    out.extend_from_slice(b", ");
    digits::<2>(at.day, out);
    out.push(b' ');
    out.extend_from_slice(named(&MONTHS, at.month - 1).unwrap_or_default().as_bytes());
    out.push(b' ');
    digits::<4>(at.year, out);
    out.push(b' ');
    clock(&at, out);
    out.extend_from_slice(b" GMT");
}

/// Appends a moment as gorouter logs it: `2026-11-21T08:17:20.286360016Z`. `wall` is in
/// nanoseconds since 1970.
pub(crate) fn log_time(wall: u64, out: &mut Vec<u8>) {
    let at = Calendar::of(wall / 1_000_000_000);
    digits::<4>(at.year, out);
    out.push(b'-');
    digits::<2>(at.month, out);
    out.push(b'-');
    digits::<2>(at.day, out);
    out.push(b'T');
    clock(&at, out);
    out.push(b'.');
    digits::<9>(wall % 1_000_000_000, out);
    out.push(b'Z');
}

/// Appends `08:17:20`.
fn clock(at: &Calendar, out: &mut Vec<u8>) {
    digits::<2>(at.hour, out);
    out.push(b':');
    digits::<2>(at.minute, out);
    out.push(b':');
    digits::<2>(at.second, out);
}
