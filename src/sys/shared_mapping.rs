//! A shared writable mapping of a file that survives a full disk. Layer 1.
//!
//! A store into a mapped hole needs a block. When there is none the kernel has no return value to put the error in and
//! sends SIGBUS. While a [`SharedMapping`] lives, a handler puts anonymous memory over the place that faulted, so the
//! store succeeds harmlessly, and keeps the place: the caller asks for it afterwards and reports the error as an error.

use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much is stored between two looks at whether a fault happened: enough that the look costs nothing, and the bound on
/// the anonymous memory that a fault can take.
const STRIDE_BYTES: usize = 16 << 20;

/// No fault so far. The first page is never mapped, so no address is zero.
const NONE: usize = 0;

/// One guarded mapping at a time in the process: the handler and these variables are the process's.
static GUARD: Mutex<()> = Mutex::new(());
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
static PAGE: AtomicUsize = AtomicUsize::new(0);
static FAULT: AtomicUsize = AtomicUsize::new(NONE);
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// A whole file mapped shared and writable, with SIGBUS caught for as long as it lives. Only one exists at a time in a
/// process; a second waits.
pub struct SharedMapping {
    mapping: Option<memmap2::MmapMut>,
    previous: Box<libc::sigaction>,
    _guard: MutexGuard<'static, ()>,
}

impl SharedMapping {
    /// `mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)`, and the handler installed.
    ///
    /// Errors: those of mmap(2); EFBIG where the address space is too small for `bytes`.
    pub fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        // SAFETY: the bytes are only ever stored to, never read as Rust values, so a change by another process cannot break
        // anything; a truncation by another process is the SIGBUS that the handler catches.
        let mapping = unsafe { memmap2::MmapOptions::new().len(bytes).map_mut(file)? };
        let start = mapping.as_ptr() as usize;
        START.store(start, Ordering::Relaxed);
        END.store(start.saturating_add(bytes), Ordering::Relaxed);
        PAGE.store(super::page_cache::page_bytes(), Ordering::Relaxed);
        FAULT.store(NONE, Ordering::Relaxed);
        Ok(SharedMapping { mapping: Some(mapping), previous: install_handler()?, _guard: guard })
    }

    /// Stores zero to every byte, as memset(3). Stops early, within 16 MiB, once a page could not be had.
    pub fn fill_with_zeros(&mut self) {
        let Some(mapping) = self.mapping.as_mut() else { return };
        for stride in mapping.chunks_mut(STRIDE_BYTES) {
            stride.fill(0);
            if FAULT.load(Ordering::Relaxed) != NONE {
                return;
            }
        }
    }

    /// `munmap`.
    pub fn unmap(&mut self) {
        self.mapping = None;
    }

    /// The offset in the file of the first page that could not be had, if there was one.
    pub fn fault_offset(&self) -> Option<u64> {
        match FAULT.load(Ordering::Relaxed) {
            NONE => None,
            address => Some((address - START.load(Ordering::Relaxed)) as u64),
        }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        self.mapping = None;
        // SAFETY: `previous` is what sigaction(2) gave us when the handler was installed.
        unsafe { libc::sigaction(libc::SIGBUS, &*self.previous, ptr::null_mut()) };
    }
}

/// Installs [`on_sigbus`] and gives back what was there before.
fn install_handler() -> io::Result<Box<libc::sigaction>> {
    // SAFETY: sigaction is a plain C structure for which all zeros is a valid value.
    let (mut action, mut previous): (libc::sigaction, Box<libc::sigaction>) =
        unsafe { (std::mem::zeroed(), Box::new(std::mem::zeroed())) };
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the pointers are to live structures (the box lives until the handler is gone), the handler has the signature
    // that SA_SIGINFO asks for, and it finds the previous action in place before it can run.
    let result = unsafe {
        libc::sigaction(libc::SIGBUS, ptr::null(), &mut *previous);
        PREVIOUS.store(&mut *previous, Ordering::Release);
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut())
    };
    if result == 0 { Ok(previous) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_sigbus(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, and for SIGBUS its address field is set. mmap, sigaction
    // and the atomics are async-signal-safe: the two calls are bare system calls. MAP_FIXED replaces pages of our own live
    // mapping alone, inside [START, END), which nothing but the interrupted store uses; the errno of the interrupted code is
    // kept. Where the fault is not ours, or no memory can be had, the previous action is put back and the store repeats, so
    // that happens what would have happened without us.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        let (start, end) = (START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
        let page = address & !(PAGE.load(Ordering::Relaxed) - 1);
        let ours = (start..end).contains(&address);
        if !ours || !cover_with_memory(page, (end - page).min(STRIDE_BYTES)) {
            libc::sigaction(libc::SIGBUS, PREVIOUS.load(Ordering::Acquire), ptr::null_mut());
        } else {
            let _ = FAULT.compare_exchange(NONE, page, Ordering::Relaxed, Ordering::Relaxed);
        }
        *libc::__errno_location() = errno;
    }
}

/// # Safety
/// `[page, page + bytes)` must lie inside the guarded mapping.
unsafe fn cover_with_memory(page: usize, bytes: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: as the caller promises.
    let covered = unsafe { libc::mmap(page as *mut libc::c_void, bytes, protection, flags, -1, 0) };
    covered != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::page_cache::page_bytes;

    fn file_of_pages(pages: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len((pages * page_bytes()) as u64).unwrap();
        file
    }

    #[test]
    fn a_page_that_cannot_be_had_is_kept_and_does_not_end_the_process() {
        let file = file_of_pages(4);
        let mut mapping = SharedMapping::new(&file, 4 * page_bytes() as u64).unwrap();
        // Pages past the end of the file cannot be had, as blocks on a full disk cannot.
        file.set_len(2 * page_bytes() as u64).unwrap();
        mapping.fill_with_zeros();
        mapping.unmap();
        assert_eq!(mapping.fault_offset(), Some(2 * page_bytes() as u64));
        drop(mapping);

        let mut mapping = SharedMapping::new(&file, 2 * page_bytes() as u64).unwrap();
        mapping.fill_with_zeros();
        assert_eq!(mapping.fault_offset(), None, "the fault of another mapping is forgotten");
    }

    #[test]
    fn the_handler_that_was_there_before_is_back_afterwards() {
        let current = || {
            // SAFETY: the pointer is to a live structure; nothing is changed.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                assert_eq!(libc::sigaction(libc::SIGBUS, ptr::null(), &mut action), 0);
                action.sa_sigaction
            }
        };
        let ours = on_sigbus as *const () as libc::sighandler_t;
        let file = file_of_pages(1);
        let mapping = SharedMapping::new(&file, page_bytes() as u64).unwrap();
        assert_eq!(current(), ours);
        let before = mapping.previous.sa_sigaction;
        drop(mapping);
        // No other test's mapping can live while this is held.
        let _guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(current(), before);
        assert_ne!(before, ours);
    }
}
