//! temp
use crate::managed::ManagedTarget;
use crate::record::Environment;
use std::path::Path;
/// d
pub struct Subject<'a> {
    /// l
    pub label: &'a str,
    /// p
    pub path: &'a Path,
    /// m
    pub managed: Option<&'a ManagedTarget>,
    /// p
    pub profile: &'a str,
    /// c
    pub cache: &'a str,
}
/// g
pub fn gather(s: &Subject) -> crate::Result<Environment> {
    let mut e = Environment::default();
    e.identity.insert("profile".into(), s.profile.into());
    Ok(e)
}
