//! The entries of a directory: fdopendir(3), readdir(3), closedir(3). Layer 1.
//!
//! Made to be timed. A call to readdir(3) is in three steps, of which the middle one is the library call and nothing else:
//!
//! ```text
//! prepare   errno = 0, by which alone an error can be told from the end
//! call      readdir
//! name      what came of it: a name, the end, or an error
//! ```
//!
//! Names are borrowed from the C library's buffer, where nix and std copy each into memory of its own.

use crate::sys::page_cache::page_bytes;
use nix::errno::Errno;
use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;

/// Memory of a stream, in bytes: 32 KiB and a header in glibc, 2 KiB and a header in musl.
const STREAM_BYTES: usize = 33 << 10;

/// An open directory and the place in it that has been reached.
#[derive(Debug)]
pub struct Directory {
    stream: NonNull<libc::DIR>,
}

/// A call that is about to be made.
#[derive(Debug)]
pub struct Call<'a> {
    directory: &'a mut Directory,
}

/// What a call gave, not yet looked at. Until then nothing may be called that sets errno.
#[derive(Debug)]
pub struct Returned<'a> {
    entry: *const libc::dirent,
    borrowed: PhantomData<&'a mut Directory>,
}

impl Directory {
    /// `fdopendir(fd)` - the entries of an open directory, from its descriptor's offset on. Closes it when dropped.
    ///
    /// Errors: ENOTDIR; EBADF where it is not open for reading, which some C libraries leave to the first call. The descriptor
    /// is closed then, too. Source: fdopendir(3).
    #[doc(alias = "fdopendir")]
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        // SAFETY: the descriptor is open and nobody else's.
        let stream = unsafe { libc::fdopendir(descriptor.as_raw_fd()) };
        // An error leaves the descriptor with its owner.
        let stream = NonNull::new(stream).ok_or_else(io::Error::last_os_error)?;
        let _now_the_streams = descriptor.into_raw_fd();
        make_present(stream);
        Ok(Directory { stream })
    }

    /// Leaves memory for one more stream at hand, so that the next [`Directory::from_descriptor`] makes no page: xfs begins to
    /// read a directory when it is opened, and the time that each page takes between that and the first call is not waited for in
    /// the call. To be called before the directory is opened.
    pub fn make_memory_present() {
        std::hint::black_box(vec![1u8; STREAM_BYTES]);
    }

    /// Makes ready for one call, outside of the clock.
    pub fn prepare(&mut self) -> Call<'_> {
        Errno::clear();
        Call { directory: self }
    }
}

/// Touches every page of a stream's memory, which is its buffer for the most part, so that no call waits for the kernel to make
/// and clear one. The heap decides which buffers lie on new pages, so that some calls of some walks took 6.5 µs longer
/// (docs/VM.md).
fn make_present(stream: NonNull<libc::DIR>) {
    let begin = stream.as_ptr().cast::<u8>();
    // SAFETY: fdopendir allocated the stream with malloc.
    let length = unsafe { libc::malloc_usable_size(begin.cast()) };
    for at in (0..length).step_by(page_bytes()).chain(length.checked_sub(1)) {
        // SAFETY: inside of the stream's own memory, which nobody else uses meanwhile; it is left as it was.
        unsafe { begin.add(at).write_volatile(begin.add(at).read_volatile()) };
    }
}

impl<'a> Call<'a> {
    /// `readdir(dirp)` - the next entry, `.` and `..` among them. Cost: this is what is timed. Source: readdir(3).
    #[doc(alias = "readdir")]
    #[inline]
    pub fn call(self) -> Returned<'a> {
        // SAFETY: the stream is open until its owner is dropped, and nobody else uses it while this borrows it mutably.
        let entry = unsafe { libc::readdir(self.directory.stream.as_ptr()) };
        Returned { entry, borrowed: PhantomData }
    }
}

impl<'a> Returned<'a> {
    /// The entry's name, none at the end of the directory. Errors: the errno of the call.
    pub fn name(self) -> io::Result<Option<&'a CStr>> {
        if self.entry.is_null() {
            return match Errno::last_raw() {
                0 => Ok(None),
                errno => Err(io::Error::from_raw_os_error(errno)),
            };
        }
        // SAFETY: the entry is valid until the next call on the stream, which the borrow holds off, and its name ends with a
        // zero byte. No reference to the whole structure is made: the kernel's record ends with the name.
        Ok(Some(unsafe { CStr::from_ptr((&raw const (*self.entry).d_name).cast()) }))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: fdopendir made the stream, and nobody closed it before. An error could only be EBADF.
        unsafe { libc::closedir(self.stream.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{UsageWho, getrusage};
    use std::collections::BTreeSet;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn open(path: &Path) -> io::Result<Directory> {
        Directory::from_descriptor(File::open(path)?.into())
    }

    /// All names but `.` and `..`, each of which must come once.
    fn names(path: &Path) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut directory = open(path)?;
        let mut names = BTreeSet::new();
        let mut calls = 0;
        while let Some(name) = directory.prepare().call().name()? {
            names.insert(name.to_bytes().to_vec());
            calls += 1;
        }
        assert_eq!(names.len(), calls, "a name came twice");
        assert!(directory.prepare().call().name()?.is_none(), "the end is no end");
        assert!(names.remove(&b"."[..]) && names.remove(&b".."[..]));
        Ok(names)
    }

    #[test]
    fn an_empty_directory_ends_at_once() {
        let directory = tempfile::tempdir().unwrap();
        assert!(names(directory.path()).unwrap().is_empty());
    }

    #[test]
    fn every_entry_comes_once_also_those_of_a_later_buffer_and_names_that_are_no_text() {
        let directory = tempfile::tempdir().unwrap();
        // More than 300 KiB of entries: glibc asks the kernel for 32 KiB at a time.
        let mut made: BTreeSet<Vec<u8>> = (0..1200).map(|at| format!("{at:0>255}").into_bytes()).collect();
        made.extend([b"\xff\xfe\x80".to_vec(), b"a\nb".to_vec(), b"\xe2\x82".to_vec()]);
        for name in &made {
            File::create(directory.path().join(OsStr::from_bytes(name))).unwrap();
        }
        assert_eq!(names(directory.path()).unwrap(), made);
    }

    #[test]
    fn no_call_makes_a_page_of_the_buffer() {
        let directory = tempfile::tempdir().unwrap();
        // More than the 32 KiB of a buffer.
        for at in 0..200 {
            File::create(directory.path().join(format!("{at:0>255}"))).unwrap();
        }
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
        // Kept open, so that each has memory of its own: 8 pages and 64 streams.
        let mut streams: Vec<_> = (0..64).map(|_| open(directory.path()).unwrap()).collect();
        streams[0].prepare().call().name().unwrap();
        let before = faults();
        for stream in &mut streams {
            stream.prepare().call().name().unwrap();
        }
        let made = faults() - before;
        assert!(made < 8, "{made} page faults in 64 calls");
    }

    #[test]
    fn a_stream_makes_no_page_where_memory_is_at_hand() {
        let directory = tempfile::tempdir().unwrap();
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
        let mut streams = Vec::with_capacity(64);
        let mut made = 0;
        for _ in 0..64 {
            Directory::make_memory_present();
            let file = File::open(directory.path()).unwrap();
            let before = faults();
            streams.push(Directory::from_descriptor(file.into()).unwrap());
            made += faults() - before;
        }
        assert!(made < 8, "{made} page faults in 64 streams");
    }

    #[test]
    fn what_is_no_directory_or_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        File::create(&file).unwrap();
        assert_eq!(open(&file).unwrap_err().raw_os_error(), Some(libc::ENOTDIR));
        assert_eq!(open(&directory.path().join("missing")).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        let path_only = nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_DIRECTORY;
        let unreadable = nix::fcntl::open(directory.path(), path_only, nix::sys::stat::Mode::empty()).unwrap();
        // Where fdopendir does not look at O_PATH (glibc 2.36), the first call says it.
        let read = |mut opened: Directory| opened.prepare().call().name().map(|_| ());
        let error = Directory::from_descriptor(unreadable).and_then(read).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn an_error_in_the_middle_is_not_the_end_and_an_old_errno_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut stream = open(directory.path()).unwrap();
        Errno::EIO.set();
        while stream.prepare().call().name().unwrap().is_some() {
            Errno::EIO.set();
        }
        // getdents(2) of a directory that was removed is ENOENT (fs/readdir.c, IS_DEADDIR); glibc takes that for the end.
        // So the descriptor is exchanged for one that getdents refuses.
        let mut stream = open(directory.path()).unwrap();
        let other = tempfile::tempfile().unwrap();
        // SAFETY: the stream is open; dup2 replaces the descriptor that it owns with another open one.
        let replaced = unsafe { libc::dup2(other.as_raw_fd(), libc::dirfd(stream.stream.as_ptr())) };
        assert!(replaced >= 0);
        assert_eq!(stream.prepare().call().name().unwrap_err().raw_os_error(), Some(libc::ENOTDIR));
    }
}
