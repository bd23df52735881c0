//! `fsgauge extents FILE…`: how many extents each file has, and where they lie.

use fsgauge::extents::{self, ExtentCount};
use fsgauge::record::PlacedExtent;
use fsgauge::report::extent_map;
use fsgauge::sys::fiemap::{Extent, ExtentMap};
use fsgauge::{Error, Result, say};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Each line: the count as `filefrag FILE` prints it (physically discontiguous runs), then the rows of FIEMAP as
`filefrag -v FILE` lists them. Unwritten data is written to the device first. `n/a`: the filesystem has no FIEMAP.

Examples:
  fsgauge extents /mnt/test/data
  fsgauge extents -v /mnt/test/data | head
  fsgauge extents --svg map.svg /mnt/test/stream-*
  find /mnt/test -type f -print0 | xargs -0 fsgauge extents

Exit status: 0 every file was answered, n/a included; 1 a file could not be opened, synced or mapped; 2 bad arguments.";

/// Count the extents of files as filefrag does.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files or directories; symbolic links are followed
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// List every extent: place in the file, place on the device, length (bytes), flags
    #[arg(short, long)]
    verbose: bool,

    /// Draw a map as well: place in the file against place on the device, one colour a file
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
}

/// Counts, prints, and returns the exit status.
pub fn run(arguments: Arguments) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let mut mapped = Vec::new();
    for file in &arguments.files {
        match extents::map_extents(file) {
            Ok(map) => {
                print_file(file, &map, arguments.verbose);
                if let (Some(_), ExtentMap::Supported(list)) = (&arguments.svg, &map) {
                    mapped.push((name_in_map(file), extents::layout(list, MOST_DRAWN / arguments.files.len())));
                }
            }
            Err(error) => {
                say!("{error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    if let Some(out) = &arguments.svg
        && let Err(error) = draw(out, &mapped)
    {
        say!("{error}");
        status = ExitCode::FAILURE;
    }
    status
}

/// More strokes than a picture has places for.
const MOST_DRAWN: usize = 20_000;

fn name_in_map(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn draw(out: &Path, mapped: &[(String, Vec<PlacedExtent>)]) -> Result<()> {
    if mapped.is_empty() {
        return Err(Error::refused(format!("cannot draw {}: no file has an extent map", out.display())));
    }
    let drawing = extent_map::draw("Where the extents lie", mapped)?;
    super::report::write(out, &drawing.to_file()?)
}

fn print_file(file: &Path, map: &ExtentMap, verbose: bool) {
    match map {
        ExtentMap::Unsupported(said) => println!("{}: n/a (no extent map here: {said})", file.display()),
        ExtentMap::Supported(list) => {
            println!("{}: {}", file.display(), summary(&extents::count(list)));
            if verbose && !list.is_empty() {
                print_list(list);
            }
        }
    }
}

fn summary(count: &ExtentCount) -> String {
    let ExtentCount { physical, raw, flags } = count;
    let noun = if *physical == 1 { "extent" } else { "extents" };
    let flags = if flags.is_empty() { String::new() } else { format!(" {}", flags.join(",")) };
    format!("{physical} {noun} (raw {raw}){flags}")
}

/// One row an extent; the ordinal of the run it belongs to stands first, so that the count can be followed.
fn print_list(list: &[Extent]) {
    println!("{:>8} {:>8} {:>16} {:>18} {:>14}  flags", "extent", "raw", "logical", "physical", "length");
    let mut run = 1;
    for (row, extent) in list.iter().enumerate() {
        if row > 0 && extents::is_break(&list[row - 1], extent) {
            run += 1;
        }
        let Extent { logical, physical, length, .. } = extent;
        let flags = extent.flag_names().join(",");
        println!(
            "{run:>8} {:>8} {logical:>16} {physical:>18} {length:>14}  {}",
            row + 1,
            if flags.is_empty() { "-" } else { &flags }
        );
    }
}
