//! Preallocation: fallocate(2) and posix_fallocate(3), errors as they are. Layer 1.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `fallocate(fd, 0, 0, len)`: asks the filesystem itself to allocate, without any fallback.
///
/// Errors: EOPNOTSUPP where the filesystem cannot, ENOSPC, EINVAL for a length of zero; EFBIG for one that does not fit
/// off_t. Cost: this is what is timed. Source: fallocate(2).
pub fn fallocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = offset(bytes)?;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call takes no pointers.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `posix_fallocate(fd, 0, len)`: the C library's call, which writes one byte a block where the filesystem cannot allocate.
///
/// Errors: the number that the call **returns**; it leaves errno alone, and a positive number is a failure.
/// Cost: this is what is timed. Source: posix_fallocate(3).
pub fn posix_fallocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = offset(bytes)?;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; the call takes no pointers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Whether an error says that the filesystem cannot preallocate, rather than that it failed to.
pub fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

fn offset(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_carries_the_number_that_was_returned() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(posix_fallocate(&file, 0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(fallocate(&file, 0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        for call in [posix_fallocate, fallocate] {
            assert_eq!(call(&file, u64::MAX).unwrap_err().raw_os_error(), Some(libc::EFBIG));
        }
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
