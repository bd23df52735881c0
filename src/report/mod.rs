//! What people look at: pages, pictures, history. Layer 4.
//!
//! [`data`] gathers what a page shows, [`page`] and [`history_page`] put it into the templates, [`chart`] draws, and
//! [`openmetrics`] and [`bmf`] write the same results for other programs.

pub mod chart;
pub mod data;
mod environment_table;
pub mod extent_map;
mod forest;
mod links;
pub mod page;
mod pictures;
mod text;
