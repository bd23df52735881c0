//! The timed code of each workload and its check; it knows nothing of criterion. Layer 2.
