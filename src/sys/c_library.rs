//! Which C library this program runs with. Layer 1.

/// The C library and its version, `glibc 2.36`, with `static` where it is linked in.
#[doc(alias = "gnu_get_libc_version")]
pub fn version() -> String {
    let linked = if cfg!(target_feature = "crt-static") { " static" } else { "" };
    format!("{}{linked}", name())
}

#[cfg(target_env = "gnu")]
fn name() -> String {
    // SAFETY: gnu_get_libc_version(3) takes nothing and returns a constant string that lives as long as the program.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn name() -> String {
    // musl does not say its version at run time.
    if cfg!(target_env = "musl") { "musl".into() } else { "other".into() }
}
