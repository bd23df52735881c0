//! What people look at: pages, pictures, history. Layer 4.
