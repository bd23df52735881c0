//! What is recorded about the machine, the kernel and the filesystem (docs/ENVIRONMENT.md). Layer 2.
//!
//! Each module returns a list of named values; the one table in [`fields`] says which class a name belongs to. Nothing here
//! fails because a file is unreadable: the field is then absent.

mod device;
pub mod fields;
mod filesystem;
mod kernel;
mod machine;
mod moment;

use crate::managed::ManagedTarget;
use crate::record::Environment;
use crate::sys::disk::Disk;
use crate::sys::mountinfo;
use crate::{Error, Result};
use fields::Class;
use std::collections::BTreeMap;
use std::path::Path;

/// The environment variable in which `fsgauge vm` hands the guest a JSON object of further identity fields.
pub const VM_VARIABLE: &str = "FSGAUGE_VM";

/// What is described: a filesystem under test, and how it is going to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The label in the benchmark ids.
    pub label: &'a str,
    /// A directory on the filesystem.
    pub path: &'a Path,
    /// What `fsgauge with` or `run` says of a filesystem that it made.
    pub managed: Option<&'a ManagedTarget>,
    /// Name of the profile.
    pub profile: &'a str,
    /// Name of the method that makes the cache cold.
    pub cache: &'a str,
}

/// One named value; none where it could not be read.
type Found = (&'static str, Option<String>);

/// Describes the machine, the kernel and the filesystem under a path.
///
/// Errors: the path does not exist, or [`VM_VARIABLE`] holds something else than a JSON object.
/// Cost: some sixty small files, and the kernel's configuration: a few milliseconds.
pub fn gather(subject: &Subject) -> Result<Environment> {
    let mounted = mountinfo::mounted_at(subject.path)?;
    let disk = Disk::of(subject.path);
    let mut environment = Environment::default();
    let found = [
        about_subject(subject),
        filesystem::found(subject, &mounted, disk.as_ref()),
        device::found(subject.managed, &mounted, disk.as_ref()),
        machine::found(),
        kernel::found(),
        moment::found(),
    ];
    for (name, value) in found.into_iter().flatten() {
        if let Some(value) = value {
            class_of(&mut environment, fields::class_of(name)).insert(name.to_owned(), value);
        }
    }
    environment.identity.extend(from_vm(std::env::var(VM_VARIABLE).ok().as_deref())?);
    Ok(environment)
}

fn class_of(environment: &mut Environment, class: Class) -> &mut BTreeMap<String, String> {
    match class {
        Class::Identity => &mut environment.identity,
        Class::Kernel => &mut environment.kernel,
        Class::Boot => &mut environment.boot,
    }
}

fn about_subject(subject: &Subject) -> Vec<Found> {
    // A build without optimisation measures something else.
    let build = if cfg!(debug_assertions) { " debug build" } else { "" };
    vec![
        ("profile", Some(subject.profile.to_owned())),
        ("cache", Some(subject.cache.to_owned())),
        ("fsgauge_version", Some(format!("{}{build}", env!("CARGO_PKG_VERSION")))),
    ]
}

/// Reads the object; values that are no strings are taken as JSON writes them.
fn from_vm(json: Option<&str>) -> Result<BTreeMap<String, String>> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json)
        .map_err(|e| Error::refused(format!("{VM_VARIABLE} is no JSON object: {e}; `fsgauge vm` sets it, unset it")))?;
    let text = |value: serde_json::Value| value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string());
    Ok(object.into_iter().map(|(name, value)| (name, text(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Subject<'static> {
        Subject { label: "here", path: Path::new("."), managed: None, profile: "quick", cache: "fadvise" }
    }

    #[test]
    fn every_field_that_is_found_is_in_the_table_and_in_its_class() {
        let environment = gather(&here()).unwrap();
        let classes = [
            (Class::Identity, &environment.identity),
            (Class::Kernel, &environment.kernel),
            (Class::Boot, &environment.boot),
        ];
        for (class, found) in classes {
            for name in found.keys() {
                let field = fields::FIELDS.iter().find(|field| field.name == name);
                assert_eq!(field.map(|field| field.class), Some(class), "{name}");
            }
        }
    }

    #[test]
    fn the_virtual_machines_fields_are_merged_and_rubbish_is_refused() {
        let fields = from_vm(Some(r#"{"vm.clock": "instructions", "vm.cpus": 1}"#)).unwrap();
        assert_eq!(fields["vm.clock"], "instructions");
        assert_eq!(fields["vm.cpus"], "1");
        assert!(from_vm(None).unwrap().is_empty());
        for rubbish in ["", "[]", "{", "3"] {
            let message = from_vm(Some(rubbish)).unwrap_err().to_string();
            assert!(message.starts_with("FSGAUGE_VM is no JSON object"), "{message}");
        }
    }
}
