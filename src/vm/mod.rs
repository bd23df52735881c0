//! Kernels in virtual machines with an instruction clock (DESIGN 2.8). Layer 4.
