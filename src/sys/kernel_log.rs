//! temp
use crate::record::KernelHealth;
/// d
#[derive(Debug)]
pub struct KernelWatch;
impl KernelWatch {
    /// o
    pub fn start() -> Self {
        KernelWatch
    }
    /// s
    pub fn finish(self) -> KernelHealth {
        KernelHealth::default()
    }
}
