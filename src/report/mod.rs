//! What people look at: pages, pictures, history. Layer 4.
//!
//! [`data`] gathers what a page shows; [`page`] and [`history_page`] put it into the templates; [`chart`] draws;
//! [`openmetrics`] and [`bmf`] write the same results for other programs.

pub mod bmf;
pub mod change_points;
pub mod chart;
pub mod data;
mod environment_table;
pub mod extent_map;
mod forest;
pub mod history;
pub mod history_page;
mod links;
pub mod openmetrics;
pub mod page;
mod pictures;
pub mod progress;
mod published;
pub mod replication;
mod text;
