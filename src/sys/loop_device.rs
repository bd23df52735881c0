//! Loop devices that release themselves: LOOP_CONFIGURE with autoclear and direct I/O. Layer 1.
//!
//! Structures and numbers are the kernel's own, from the linux-raw-sys crate.

use crate::{Error, Result};
use linux_raw_sys::loop_device as uapi;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The control device: it knows which loop device is free.
const CONTROL: &str = "/dev/loop-control";
/// How often another process may take the free device first.
const ATTEMPTS: u32 = 64;
/// How long the kernel may take to release a device after its last user is gone.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// An attached loop device. The kernel detaches it (autoclear) when the last descriptor and mount are gone: while this
/// value lives, an unmount does not lose the image.
#[derive(Debug)]
pub struct LoopDevice {
    device: File,
    path: PathBuf,
    direct_io: bool,
}

impl LoopDevice {
    /// Attaches an image that is open for reading and writing.
    ///
    /// `direct_io` asks that the image's pages are not cached a second time; [`LoopDevice::direct_io`] tells whether it took
    /// (the image's filesystem may not support it).
    ///
    /// Errors: no right to the control device, no free device, or the kernel refuses the image.
    pub fn attach(image: &File, direct_io: bool) -> Result<Self> {
        let control_path = Path::new(CONTROL);
        let control = OpenOptions::new().read(true).write(true).open(control_path).map_err(|e| {
            Error::io("open", control_path, &e).hint("loop devices need root and the loop module (modprobe loop)")
        })?;
        for _ in 0..ATTEMPTS {
            // SAFETY: LOOP_CTL_GET_FREE takes no argument and returns a number; the descriptor is open.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), uapi::LOOP_CTL_GET_FREE as libc::Ioctl) };
            if number < 0 {
                return Err(Error::io("get a free loop device from", control_path, &std::io::Error::last_os_error()));
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(|e| Error::io("open", &path, &e).hint("a container needs the host's /dev (devtmpfs)"))?;
            match configure(&device, image, direct_io) {
                Ok(()) => {
                    let direct_io = status(&device)
                        .map_err(|e| Error::io("read the state of", &path, &e))?
                        .is_some_and(|info| info.lo_flags & uapi::LO_FLAGS_DIRECT_IO as u32 != 0);
                    return Ok(LoopDevice { device, path, direct_io });
                }
                // Another process was faster: ask for the next free one.
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {}
                Err(e) => return Err(Error::io("attach an image to", &path, &e)),
            }
        }
        Err(Error::failed(format!(
            "cannot get a loop device: {ATTEMPTS} times another process took the free one first"
        )))
    }

    /// The device's path, such as `/dev/loop0`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the device reads and writes its image with direct I/O, as the kernel reports it.
    pub fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// Lets go of the device and waits until the kernel has released it.
    ///
    /// Errors: five seconds later it still holds the image, so something else has it open or mounted.
    pub fn release(self) -> Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_os_string();
        let backing_file = Path::new("/sys/block").join(name).join("loop/backing_file");
        let before = std::fs::read(&backing_file).ok();
        drop(self.device);
        let deadline = Instant::now() + RELEASE_PATIENCE;
        // A different image in it is another process that has already got the released device.
        while before.is_some() && std::fs::read(&backing_file).ok() == before {
            if Instant::now() >= deadline {
                return Err(Error::failed(format!(
                    "cannot release {}: it is still open or mounted somewhere; the kernel releases it when that ends",
                    self.path.display()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn configure(device: &File, image: &File, direct_io: bool) -> std::io::Result<()> {
    // SAFETY: loop_config is plain integers and arrays of them; all zeros is what the kernel asks for in unused fields.
    let mut config: uapi::loop_config = unsafe { std::mem::zeroed() };
    config.fd = image.as_raw_fd() as u32;
    config.info.lo_flags = uapi::LO_FLAGS_AUTOCLEAR as u32;
    if direct_io {
        config.info.lo_flags |= uapi::LO_FLAGS_DIRECT_IO as u32;
    }
    // SAFETY: LOOP_CONFIGURE reads one loop_config; both descriptors stay open during the call.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), uapi::LOOP_CONFIGURE as libc::Ioctl, &config) };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// What the kernel says of a loop device; none where no image is attached.
fn status(device: &File) -> std::io::Result<Option<uapi::loop_info64>> {
    // SAFETY: as above, plain integers.
    let mut info: uapi::loop_info64 = unsafe { std::mem::zeroed() };
    // SAFETY: LOOP_GET_STATUS64 writes one loop_info64, for which there is room.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), uapi::LOOP_GET_STATUS64 as libc::Ioctl, &mut info) };
    match (status, std::io::Error::last_os_error()) {
        (0.., _) => Ok(Some(info)),
        (_, error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        (_, error) => Err(error),
    }
}
