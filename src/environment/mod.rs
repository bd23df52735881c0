//! What is recorded about the machine, the kernel and the filesystem (DESIGN 2.5). Layer 2.
