//! Workloads as criterion benchmark groups: plan, cold cache, progress, records. Layer 4.
