//! One-line values of /proc and /sys. Layer 1.
//!
//! Everything here is read for the record, where a value that cannot be had is left out: so `None`, not an error.

use std::path::Path;

/// The content of a one-line file, blanks at its ends removed; none where it is unreadable or empty.
pub fn read(file: impl AsRef<Path>) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    (!text.is_empty()).then_some(text)
}

/// A kernel parameter by the name sysctl(8) gives it: `vm.dirty_ratio`.
pub fn parameter(name: &str) -> Option<String> {
    read(Path::new("/proc/sys").join(name.replace('.', "/")))
}

/// The choice in force where the file lists all of them, `always [madvise] never`; the whole text where none is marked.
pub fn chosen(file: impl AsRef<Path>) -> Option<String> {
    read(file).map(|text| marked(&text).unwrap_or(&text).to_owned())
}

fn marked(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(choice, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_choice_is_taken() {
        assert_eq!(marked("always [madvise] never"), Some("madvise"));
        assert_eq!(marked("none"), None);
    }

    #[test]
    fn parameters_are_read_by_their_dotted_name_and_absent_ones_are_none() {
        assert!(parameter("vm.dirty_ratio").is_some_and(|value| value.parse::<u32>().is_ok()));
        assert_eq!(parameter("vm.no_such_parameter"), None);
    }
}
