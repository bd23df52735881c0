//! The house rules of the source: imports run downward with no circles, files stay short, one file knows each foreign thing.
//!
//! The layers are those of the table in src/lib.rs. Paths are followed through `pub use`, so that `harness::Iteration` is an
//! import of the file that defines it. A parent that hands over to its child by a bare path (`gate::run(…)`) dispatches and does
//! not import. Tests inside the files are left out: they may use what they test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 400;

/// What only one file may spell out, and that file.
const KNOWN_BY_ONE: [(&str, &[&str]); 3] = [
    (
        "src/judge/criterion_files.rs",
        &["\"estimates.json\"", "\"sample.json\"", "\"benchmark.json\"", "\"tukey.json\""],
    ),
    ("src/vm/virtme.rs", &["\"--disable-kvm\"", "\"--force-9p\"", "--rwdir=", "--qemu-opts", "\"vng\""]),
    ("src/sys/fiemap.rs", &["use fiemap", "::fiemap::{Fiemap", "FiemapFlags", "FS_IOC_FIEMAP"]),
];

/// One source file: the module it is, and its text without comments and tests.
struct Source {
    file: PathBuf,
    lines: usize,
    text: String,
    code: String,
}

/// A module's path below the crate: `["judge", "gate"]`; the crate itself is empty.
type Module = Vec<String>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> BTreeMap<Module, Source> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("src is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("UTF-8");
                let file = path.strip_prefix(root()).expect("below the root").to_owned();
                let module = module_of(&file);
                found.insert(
                    module,
                    Source { lines: text.lines().count(), code: without_comments_and_tests(&text), text, file },
                );
            }
        }
    }
    found
}

fn module_of(file: &Path) -> Module {
    let mut parts: Module =
        file.with_extension("").iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// Comments start with `//`; the tests of a file are its end, from `#[cfg(test)]` before `mod tests` on.
fn without_comments_and_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next_is_module = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod "));
        if line.trim() == "#[cfg(test)]" && next_is_module {
            break;
        }
        let comment = line.trim_start().starts_with("//");
        let line = line.split(" // ").next().unwrap_or_default();
        if !comment {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// Takes a `use` tree apart: `a::{b, c::{d, self}}` is a::b, a::c::d, a::c.
fn flatten(tree: &str, before: &[String], out: &mut Vec<Module>) {
    let tree = tree.trim();
    let Some(brace) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let names =
            path.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "self").map(str::to_owned);
        out.push(before.iter().cloned().chain(names).collect());
        return;
    };
    let names = tree[..brace].split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let before: Module = before.iter().cloned().chain(names).collect();
    let inner = &tree[brace + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut start) = (0, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                flatten(&inner[start..at], &before, out);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        flatten(&inner[start..], &before, out);
    }
}

/// The statements `use …;` of a code: whether public, and the tree.
fn use_statements(code: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("use ") {
        let line_before = code[..start].rsplit('\n').next().unwrap_or_default().trim();
        if line_before.is_empty() || line_before.starts_with("pub") {
            let tree = code[start + 4..].split(';').next().unwrap_or_default();
            found.push((line_before.starts_with("pub"), tree.replace('\n', " ")));
        }
    }
    found
}

/// Every `crate::…` and `super::…` in a code outside of `use`, as far as the path goes.
fn inline_paths(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"].iter().flat_map(|word| code.match_indices(word)).map(|(at, _)| at) {
        let before = code[..start].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || before == '_' || before == ':' {
            continue;
        }
        let path: String =
            code[start..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
        found.push(path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    found
}

/// A path as written in `from`, from the crate's root on; none where it leads out of the crate.
fn absolute(path: &[String], from: &Module, modules: &BTreeMap<Module, Source>) -> Option<Module> {
    let in_command = from.first().is_some_and(|top| top == "cli" || top == "main");
    match path.first()?.as_str() {
        "crate" if in_command => Some(path[1..].to_vec()),
        "crate" => Some(path[1..].to_vec()),
        "fsgauge" if in_command => Some(path[1..].to_vec()),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            let kept = from.len().checked_sub(up)?;
            Some(from[..kept].iter().chain(&path[up..]).cloned().collect())
        }
        // A child of this module, named without `self`.
        first => {
            let child: Module = from.iter().cloned().chain([first.to_owned()]).collect();
            modules.contains_key(&child).then(|| from.iter().chain(path).cloned().collect())
        }
    }
}

/// What `pub use` gives another name: module and name, and the path that it stands for.
type Renamed = BTreeMap<(Module, String), Module>;

/// The file in which a path ends: the longest module that it begins with, after `pub use` was followed.
fn file_of(path: &Module, modules: &BTreeMap<Module, Source>, renamed: &Renamed) -> Module {
    let mut path = path.clone();
    for _ in 0..8 {
        let length = (0..=path.len()).rev().find(|&length| modules.contains_key(&path[..length])).unwrap_or(0);
        let module = path[..length].to_vec();
        match path.get(length).and_then(|name| renamed.get(&(module.clone(), name.clone()))) {
            Some(target) => path = target.iter().chain(&path[length + 1..]).cloned().collect(),
            None => return module,
        }
    }
    panic!("`pub use` goes round in circles at {path:?}");
}

/// Which file imports which.
fn imports(modules: &BTreeMap<Module, Source>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut renamed = Renamed::new();
    let mut written: Vec<(Module, Module)> = Vec::new();
    for (module, source) in modules {
        for (public, tree) in use_statements(&source.code) {
            let mut paths = Vec::new();
            flatten(&tree, &[], &mut paths);
            for path in paths.iter().filter_map(|path| absolute(path, module, modules)) {
                match path.last() {
                    Some(name) if public => drop(renamed.insert((module.clone(), name.clone()), path.clone())),
                    _ => written.push((module.clone(), path)),
                }
            }
        }
        let inline = inline_paths(&source.code);
        written.extend(
            inline.iter().filter_map(|path| absolute(path, module, modules)).map(|path| (module.clone(), path)),
        );
    }
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (from, path) in written {
        let to = file_of(&path, modules, &renamed);
        // The crate's root declares and defines nothing: a bare `crate::{…` of a `use` that was taken apart already.
        if to != from && !to.is_empty() {
            edges.entry(from).or_default().insert(to);
        }
    }
    edges
}

/// The layer of each top-level module, from the table in src/lib.rs; `main` is above all.
fn layers() -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let mut layers = BTreeMap::from([("main".to_owned(), 6)]);
    for row in text.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Ok(layer) = cells[0].parse() else { continue };
        for name in cells[1].split('`').skip(1).step_by(2) {
            layers.insert(name.to_owned(), layer);
        }
    }
    layers
}

fn shown(module: &Module) -> String {
    module.join("::")
}

/// Groups of more than one node that reach each other.
fn circles<'a, T: Ord + Clone + 'a>(edges: &BTreeMap<T, BTreeSet<T>>) -> Vec<Vec<T>> {
    let reach = |start: &T| {
        let mut seen: BTreeSet<T> = BTreeSet::new();
        let mut waiting: Vec<T> = vec![start.clone()];
        while let Some(node) = waiting.pop() {
            for next in edges.get(&node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    waiting.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&T, BTreeSet<T>> = edges.keys().map(|node| (node, reach(node))).collect();
    let mut found: Vec<Vec<T>> = Vec::new();
    for (node, below) in &reached {
        let circle: Vec<T> =
            below.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(*node))).cloned().collect();
        if !circle.is_empty() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn imports_run_downward() {
    let modules = sources();
    let layers = layers();
    let mut faults = Vec::new();
    for top in modules.keys().filter_map(|module| module.first()) {
        if !layers.contains_key(top) {
            faults.push(format!("{top} has no row in the table of layers in src/lib.rs"));
        }
    }
    let edges = imports(&modules);
    for (from, targets) in &edges {
        for to in targets.iter().filter(|to| to[0] != from[0]) {
            if let (Some(above), Some(below)) = (layers.get(&from[0]), layers.get(&to[0]))
                && above < below
            {
                faults.push(format!("{} (layer {above}) imports {} (layer {below})", shown(from), shown(to)));
            }
        }
    }
    // So many imports there are at the least; fewer mean that this test has gone blind.
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 200, "{edges:?}");
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_two_top_level_modules_and_no_two_files_import_each_other() {
    let modules = sources();
    let edges = imports(&modules);
    let mut tops: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, targets) in &edges {
        let others = targets.iter().map(|to| to[0].clone()).filter(|top| *top != from[0]);
        tops.entry(from[0].clone()).or_default().extend(others);
    }
    let between = circles(&tops);
    assert!(between.is_empty(), "top-level modules that import each other: {between:?}");
    let between: Vec<String> =
        circles(&edges).iter().map(|circle| circle.iter().map(shown).collect::<Vec<_>>().join(", ")).collect();
    assert!(between.is_empty(), "files that import each other, a group a line:\n{}", between.join("\n"));
}

#[test]
fn a_long_file_says_why() {
    let long: Vec<String> = sources()
        .values()
        .filter(|source| source.lines > LONGEST_FILE && !source.text.contains("// Long because "))
        .map(|source| format!("{}: {} lines, and no `// Long because` line", source.file.display(), source.lines))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn one_file_knows_each_foreign_thing() {
    let modules = sources();
    for (owner, words) in KNOWN_BY_ONE {
        let knows = |source: &Source| words.iter().find(|word| source.code.contains(**word)).copied();
        let others: Vec<String> = modules
            .values()
            .filter(|source| source.file != Path::new(owner))
            .filter_map(|source| {
                knows(source).map(|word| format!("{} has {word}, which only {owner} may know", source.file.display()))
            })
            .collect();
        assert!(others.is_empty(), "{}", others.join("\n"));
        let source = modules.values().find(|source| source.file == Path::new(owner));
        assert!(
            source.is_some_and(|source| knows(source).is_some()),
            "{owner} has none of {words:?}: this test has gone blind"
        );
    }
}

#[test]
fn use_trees_are_taken_apart() {
    let mut paths = Vec::new();
    flatten("a::{self, b, c::{d as e, f}}", &[], &mut paths);
    let shown: Vec<String> = paths.iter().map(shown).collect();
    assert_eq!(shown, ["a", "a::b", "a::c::d", "a::c::f"]);
}

#[test]
fn a_circle_is_found() {
    let edge = |to: &[&'static str]| to.iter().copied().collect::<BTreeSet<_>>();
    let edges = BTreeMap::from([("a", edge(&["b"])), ("b", edge(&["c"])), ("c", edge(&["b", "d"]))]);
    assert_eq!(circles(&edges), [vec!["b", "c"]]);
}
