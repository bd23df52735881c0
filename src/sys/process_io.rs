//! What this process transferred: /proc/self/io. Layer 1.

use crate::{Error, Result};
use std::path::Path;

const FILE: &str = "/proc/self/io";

/// Bytes that this process caused to be read from devices so far (`read_bytes`), read-ahead on its behalf included.
///
/// Reads that the page cache or a filesystem in memory served do not count. Errors: a kernel without
/// CONFIG_TASK_IO_ACCOUNTING. Source: Documentation/filesystems/proc.rst, 3.3.
pub fn read_bytes() -> Result<u64> {
    let text = std::fs::read_to_string(FILE).map_err(|e| {
        Error::io("read", Path::new(FILE), &e)
            .hint("the kernel needs CONFIG_TASK_IO_ACCOUNTING to count this process's reads")
    })?;
    parse_read_bytes(&text).ok_or_else(|| Error::failed(format!("{FILE} has no line `read_bytes: N`")))
}

fn parse_read_bytes(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_the_line_of_that_name_and_no_other() {
        assert_eq!(parse_read_bytes("rchar: 3\nread_bytes: 40\nwrite_bytes: 5\ncancelled_write_bytes: 6\n"), Some(40));
        assert_eq!(parse_read_bytes("rchar: 3\n"), None);
        assert_eq!(parse_read_bytes("read_bytes: \n"), None);
    }
}
