//! This boot and this moment: kept, not compared.

use super::Found;
use super::machine::memory;
use crate::sys::sysctl;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn found() -> Vec<Found> {
    // The wall clock, and only here: nothing is measured with it.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| utc(since.as_secs()));
    vec![
        ("memory_free", memory("MemAvailable")),
        ("boot_id", sysctl::parameter("kernel.random.boot_id")),
        ("date", now),
    ]
}

/// `2026-11-30T12:45:00Z`. Days to a date of the Gregorian calendar, counted in its eras of 400 years from March 1st, so
/// that the leap day is the last of a year.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // 719,468 days from 0000-03-01 to 1970-01-01; 146,097 days an era.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_those_of_date_1() {
        // Each from `date -u -d @N +%FT%TZ`.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (1_796_041_799, "2026-11-30T12:29:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
