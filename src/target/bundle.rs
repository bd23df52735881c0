//! `fsgauge bundle`: one archive for a test machine that has no Rust.

use super::bench_executables::{self, BUNDLE_FOLDER, Built};
use super::catalog::TARGET_FOLDER;
use crate::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was packed.
#[derive(Debug)]
pub struct Bundle {
    /// The archive.
    pub path: PathBuf,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// What is in it, as paths in the archive.
    pub content: Vec<String>,
}

/// Builds static executables and packs them: `fsgauge`, `benches/NAME`, `target-config/NAME.toml`.
///
/// Errors: the file's name says no known format, no source tree, it does not build, or the archive cannot be written
/// (then no half of it is left).
pub fn bundle(file: &Path) -> Result<Bundle> {
    let compressed = is_compressed(file)?;
    let built = build_static()?;
    let part = PathBuf::from([file.as_os_str(), ".part".as_ref()].join("".as_ref()));
    let targets = targets()?;
    let packed = pack(&part, compressed, &built, &targets).and_then(|content| {
        std::fs::rename(&part, file).map_err(|e| Error::io("write", file, &e))?;
        let size_bytes = file.metadata().map_err(|e| Error::io("look at", file, &e))?.len();
        Ok(Bundle { path: file.to_path_buf(), size_bytes, content })
    });
    if packed.is_err() {
        // The error that matters is the one that is returned.
        let _may_not_exist = std::fs::remove_file(&part);
    }
    packed
}

fn is_compressed(file: &Path) -> Result<bool> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match () {
        () if name.ends_with(".tar.gz") || name.ends_with(".tgz") => Ok(true),
        () if name.ends_with(".tar") => Ok(false),
        () => Err(Error::refused(format!("{}: the name must end with .tar.gz, .tgz or .tar", file.display()))),
    }
}

/// The command and the benchmarks, linked statically, in a target directory of their own so that a plain `cargo bench`
/// rebuilds nothing.
fn build_static() -> Result<Vec<Built>> {
    let manifest = bench_executables::manifest()?;
    let triple = host_triple()?;
    let folder = bench_executables::target_folder(&manifest)?.join("bundle");
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.push(" -C target-feature=+crt-static");
    let environment: [(&str, OsString); 2] = [("RUSTFLAGS", flags), ("CARGO_TARGET_DIR", folder.into())];
    // An explicit --target keeps the flag away from proc macros, which cannot be linked statically.
    let words = ["build", "--profile", "bench", "--bins", "--benches", "--target", &triple];
    let mut built = bench_executables::build(&manifest, &words, &environment)?;
    built.retain(|built| built.kind == "bin" || built.kind == "bench");
    built.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    if !built.iter().any(|one| one.kind == "bin") || !built.iter().any(|one| one.kind == "bench") {
        return Err(Error::failed(format!("cargo {} did not build the command and its benchmarks", words.join(" "))));
    }
    Ok(built)
}

/// The triple of this machine, as rustc names it.
fn host_triple() -> Result<String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&program).arg("-vV").output();
    let output = output
        .map_err(|e| Error::io("run", Path::new(&program), &e).hint("a bundle is made where Rust is").into_refusal())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or_else(|| Error::failed("cannot read the host's triple from `rustc -vV`"))
}

/// The files of target-config/ in the source tree, the user's own among them.
fn targets() -> Result<Vec<(String, Vec<u8>)>> {
    let folder = bench_executables::manifest()?.with_file_name(TARGET_FOLDER);
    let entries = std::fs::read_dir(&folder).map_err(|e| Error::io("read", &folder, &e))?;
    let files =
        entries.flatten().map(|entry| entry.path()).filter(|file| file.extension().is_some_and(|e| e == "toml"));
    let mut targets = files
        .map(|file| {
            let text = std::fs::read(&file).map_err(|e| Error::io("read", &file, &e))?;
            Ok((format!("{TARGET_FOLDER}/{}", file.file_name().unwrap_or_default().to_string_lossy()), text))
        })
        .collect::<Result<Vec<_>>>()?;
    targets.sort();
    Ok(targets)
}

fn pack(part: &Path, compressed: bool, built: &[Built], targets: &[(String, Vec<u8>)]) -> Result<Vec<String>> {
    let file = File::create(part).map_err(|e| Error::io("write", part, &e))?;
    let file = BufWriter::new(file);
    let written = if compressed {
        append_all(GzEncoder::new(file, Compression::default()), built, targets)
            .and_then(|(encoder, content)| Ok((encoder.finish()?, content)))
    } else {
        append_all(file, built, targets)
    };
    let flushed = written.and_then(|(mut file, content)| {
        file.flush()?;
        Ok(content)
    });
    flushed.map_err(|e| Error::io("write", part, &e))
}

fn append_all<W: Write>(
    writer: W,
    built: &[Built],
    targets: &[(String, Vec<u8>)],
) -> std::io::Result<(W, Vec<String>)> {
    let mut archive = tar::Builder::new(writer);
    let mut content = Vec::new();
    for one in built {
        let name = if one.kind == "bin" { one.name.clone() } else { format!("{BUNDLE_FOLDER}/{}", one.name) };
        append(&mut archive, &name, 0o755, &std::fs::read(&one.path)?)?;
        content.push(name);
    }
    for (name, text) in targets {
        append(&mut archive, name, 0o644, text)?;
        content.push(name.clone());
    }
    Ok((archive.into_inner()?, content))
}

/// No owner, no time: the same executables make the same archive.
fn append<W: Write>(archive: &mut tar::Builder<W>, name: &str, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mtime(0);
    archive.append_data(&mut header, name, bytes)
}
