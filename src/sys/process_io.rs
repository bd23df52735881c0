//! What a process transferred: /proc/PID/io. Layer 1.

use crate::{Error, Result};
use std::path::Path;

/// Bytes that this process caused to be read from devices so far (`read_bytes`), read-ahead on its behalf included.
///
/// Reads that the page cache or a filesystem in memory served do not count. Errors: a kernel without
/// CONFIG_TASK_IO_ACCOUNTING. Source: Documentation/filesystems/proc.rst, 3.3.
pub fn read_bytes() -> Result<u64> {
    read("self", "read_bytes")
}

/// Bytes that another process of this user handed to write(2) and its like so far (`wchar`), to pipes too: counted when the
/// call has returned, wherever the bytes are then.
///
/// Errors: as [`read_bytes`], and a process that is gone.
pub fn bytes_given_to_write(process: u32) -> Result<u64> {
    read(&process.to_string(), "wchar")
}

fn read(process: &str, counter: &str) -> Result<u64> {
    let file = format!("/proc/{process}/io");
    let text = std::fs::read_to_string(&file).map_err(|e| {
        Error::io("read", Path::new(&file), &e)
            .hint("the kernel needs CONFIG_TASK_IO_ACCOUNTING to count what a process reads and writes")
    })?;
    parse(&text, counter).ok_or_else(|| Error::failed(format!("{file} has no line `{counter}: N`")))
}

fn parse(text: &str, counter: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(counter)?.strip_prefix(':'))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_the_line_of_that_name_and_no_other() {
        let text = "rchar: 3\nwchar: 4\nread_bytes: 40\nwrite_bytes: 5\ncancelled_write_bytes: 6\n";
        assert_eq!((parse(text, "read_bytes"), parse(text, "wchar"), parse(text, "write")), (Some(40), Some(4), None));
        assert_eq!(parse("rchar: 3\n", "read_bytes"), None);
        assert_eq!(parse("read_bytes: \n", "read_bytes"), None);
    }
}
