//! Links from a page to criterion's own reports, relative, so that the folder can be moved as a whole. Layer 4.

use std::path::{Component, Path, PathBuf};

/// The relative address of criterion's report on the benchmark that a baseline's folder belongs to; none where criterion wrote
/// no report (`--noplot`) or the page is not to lie in a file.
pub(super) fn to_criterion_report(page: Option<&Path>, baseline_folder: &Path) -> Option<String> {
    let report = baseline_folder.parent()?.join("report").join("index.html");
    if !report.is_file() {
        return None;
    }
    let page_folder = std::path::absolute(page?).ok()?.parent()?.canonicalize().ok()?;
    Some(address(&relative(&page_folder, &report.canonicalize().ok()?)))
}

/// The way from a folder to a file, both absolute and without links.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}

/// A path as a browser reads it: everything but letters, digits and a few signs as `%XX` (RFC 3986).
fn address(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~+@".contains(&byte);
    bytes.iter().map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_and_escaped() {
        let way = relative(Path::new("/a/pages/new"), Path::new("/a/criterion/g/50% <x>/report/index.html"));
        assert_eq!(address(&way), "../../criterion/g/50%25%20%3Cx%3E/report/index.html");
        assert_eq!(relative(Path::new("/a"), Path::new("/a/b")), Path::new("b"));
    }
}
