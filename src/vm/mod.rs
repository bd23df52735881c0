//! Kernels in virtual machines with an instruction clock (docs/VM.md). Layer 4.
//!
//! The way of one boot: [`kernel`] finds an image and its modules, [`initramfs`] packs them with the benchmarks and mkfs,
//! [`virtme`] turns it into QEMU's command line, [`machine`] runs it, [`guest`] is process 1 inside, [`faults`] says what
//! went wrong, [`record`](recorded) hands what was measured to criterion on the host.

pub mod bisect;
pub mod clock;
pub mod compare;
pub mod disk;
pub mod faults;
pub mod guest;
pub mod initramfs;
pub mod kernel;
pub mod kvm;
pub mod machine;
pub mod modules;
pub mod plan;
pub mod recorded;
pub mod run;
pub mod schedule;
pub mod virtme;
pub mod work;
