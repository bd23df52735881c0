//! Namespaces and the fork that enters them, so that whatever is made dies with the process that needed it. Layer 1.
//!
//! A PID namespace is what makes that certain: when its first process dies, by SIGKILL too, the kernel kills every other
//! process in it, however it was started, and with the last of them goes the mount namespace and all its mounts.

use crate::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{ForkResult, Pid, fork};
use std::io::Write as _;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

/// Which namespaces the children of this process begin in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// None: nothing is mounted, so nothing can be left.
    None,
    /// A PID and a mount namespace; needs root (CAP_SYS_ADMIN).
    Root,
    /// The same inside a user namespace of one user: enough for tmpfs, needs no right where the system allows it.
    User,
}

/// The two sides of [`fork_isolated`].
pub enum Side {
    /// In the process that called; `alive` must be kept open as long as the child shall live.
    Parent {
        /// The child.
        child: Pid,
        /// Closing it, or dying, tells the child that its parent is gone.
        alive: OwnedFd,
    },
    /// In the new process. It must end with the status of its work and never return into its caller's code.
    Child {
        /// Whether its namespaces are ready. If not, it has to say so and end.
        ready: Result<()>,
    },
}

/// fork(2) into new namespaces. The child dies with this process. This process must have one thread only.
///
/// Errors: no right to namespaces (says which setting), or fork failed; always in the calling process.
pub fn fork_isolated(isolation: Isolation) -> Result<Side> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    match isolation {
        Isolation::None => {}
        Isolation::Root => unshare(CloneFlags::CLONE_NEWPID).map_err(|e| no_namespace("a PID namespace", e))?,
        Isolation::User => {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).map_err(|e| {
                failed("make a user namespace", e)
                    .into_refusal()
                    .hint("sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone may forbid it")
            })?;
            // The same numbers inside as outside: COMMAND runs as who called, and its files are theirs.
            write_map("/proc/self/setgroups", "deny")?;
            write_map("/proc/self/uid_map", &format!("{user} {user} 1"))?;
            write_map("/proc/self/gid_map", &format!("{group} {group} 1"))?;
        }
    }
    let (watched, alive) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|e| failed("make a pipe", e))?;
    // SAFETY: the process has one thread (a condition of this function), so the child may go on running any code.
    match unsafe { fork() }.map_err(|e| failed("fork", e))? {
        ForkResult::Parent { child } => Ok(Side::Parent { child, alive }),
        ForkResult::Child => {
            drop(alive);
            let ready = die_with_parent(&watched).and_then(|()| match isolation {
                Isolation::None => Ok(()),
                Isolation::Root | Isolation::User => own_mounts_and_proc(),
            });
            Ok(Side::Child { ready })
        }
    }
}

/// PR_SET_PDEATHSIG, and a look whether the parent died before it took.
fn die_with_parent(watched: &OwnedFd) -> Result<()> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| failed("ask to die with the parent", e))?;
    let mut descriptors = [PollFd::new(watched.as_fd(), PollFlags::POLLIN)];
    match poll(&mut descriptors, PollTimeout::ZERO) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Error::failed("the parent process is gone")),
        Err(errno) => Err(failed("look after the parent", errno)),
    }
}

/// Makes the mounts of this process its own and /proc that of its PID namespace.
fn own_mounts_and_proc() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| no_namespace("a mount namespace", e))?;
    make_mounts_private().map_err(|e| failed("make the mounts private", e))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).map_err(|e| {
        Error::io("mount proc on", Path::new("/proc"), &e.into())
            .hint("a container that hides parts of /proc forbids it without root; a chroot needs the directory /proc")
    })
}

/// `mount --make-rprivate /`: mounts are shared by default under systemd, and without this every mount made here would
/// appear outside too.
///
/// In a chroot `/` is no mount that could be named, so it is done at the namespace's own root: entering a mount
/// namespace, even one's own, goes there. Then back to the root and the directory of before.
fn make_mounts_private() -> nix::Result<()> {
    let (directory, none) = (OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
    let (root, here) = (open("/", directory, none)?, open(".", directory, none)?);
    // SAFETY: pidfd_open takes two integers; the descriptor it returns is nobody else's.
    let own = unsafe {
        match libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) {
            -1 => return Err(Errno::last()),
            descriptor => OwnedFd::from_raw_fd(descriptor as i32),
        }
    };
    setns(own, CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    nix::unistd::fchdir(&root)?;
    nix::unistd::chroot(".")?;
    nix::unistd::fchdir(&here)
}

fn write_map(path: &str, content: &str) -> Result<()> {
    let path = Path::new(path);
    let open = std::fs::OpenOptions::new().write(true).open(path);
    open.and_then(|mut file| file.write_all(content.as_bytes())).map_err(|e| Error::io("write", path, &e))
}

fn no_namespace(what: &str, errno: Errno) -> Error {
    let error = failed(&format!("make {what}"), errno).into_refusal();
    match errno {
        Errno::EPERM => error.hint("it needs CAP_SYS_ADMIN, which a container has only if it is privileged"),
        Errno::ENOSPC => error.hint("there are as many as sysctl user.max_*_namespaces allows"),
        _ => error,
    }
}

fn failed(what: &str, errno: Errno) -> Error {
    Error::failed(format!("cannot {what}: {}", std::io::Error::from(errno)))
}

/// Kills every other process of this PID namespace. Does nothing unless the caller is its first process, so it can
/// never reach a process outside.
///
/// Returns how many there were.
pub fn kill_all_others() -> u32 {
    if nix::unistd::getpid() != Pid::from_raw(1) || nix::unistd::getppid() != Pid::from_raw(0) {
        return 0;
    }
    let others = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = others.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).filter(|pid| *pid != 1);
    // Zombies are no longer running: counted out by their state.
    let running = pids.filter(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !status.is_empty() && !status.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z')
    });
    let count = running.count() as u32;
    // -1: everything the caller may signal except itself, which in a PID namespace is the namespace.
    let _none_left = nix::sys::signal::kill(Pid::from_raw(-1), Signal::SIGKILL);
    while nix::sys::wait::wait().is_ok() {}
    count
}
