//! `fsgauge env [PATH]`: the record of the machine, the kernel and the filesystem, as the benches write it.

use fsgauge::environment::fields::{Class, FIELDS};
use fsgauge::environment::{self, Subject};
use fsgauge::harness::settings::Settings;
use fsgauge::managed;
use fsgauge::record::{Environment, TOLERANCES};
use fsgauge::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
A difference in an identity field makes `fsgauge gate` refuse a comparison, unless --accept-difference names the field.
Kernel fields are shown and never refused; boot fields are kept and not compared. A field that could not be read is absent.

Examples:
  fsgauge env /mnt/test
  fsgauge env --json /mnt/test | jq .identity
  fsgauge with ext4 -- fsgauge env
  fsgauge env --fields | grep ^identity

Exit status: 0 printed, 2 no such path or a bad argument.";

/// Print what is recorded about the machine, the kernel and a filesystem.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A directory or file on the filesystem to describe [default: FSGAUGE_PATH, else the current directory]
    path: Option<PathBuf>,

    /// Print the record as JSON, in the form it has in fsgauge.json
    #[arg(long)]
    json: bool,

    /// List the names of all fields, with class and meaning
    #[arg(long, conflicts_with_all = ["json", "path"])]
    fields: bool,
}

/// Describes, prints, and returns the exit status.
pub fn run(arguments: Arguments) -> ExitCode {
    if arguments.fields {
        print_fields();
        return ExitCode::SUCCESS;
    }
    match print_all(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::refuse(&error),
    }
}

fn print_all(arguments: &Arguments) -> Result<()> {
    let settings = Settings::from_environment()?;
    let asked = settings.targets.iter().map(|target| target.path.clone());
    let paths: Vec<PathBuf> = match &arguments.path {
        Some(path) => vec![path.clone()],
        None if settings.targets.is_empty() => vec![PathBuf::from(".")],
        None => asked.collect(),
    };
    if arguments.json && paths.len() > 1 {
        return Err(Error::refused("FSGAUGE_PATH has several targets: name the path of one after --json"));
    }
    let several = paths.len() > 1;
    for path in &paths {
        let environment = describe(path, &settings)?;
        if arguments.json {
            let json = serde_json::to_string_pretty(&environment)
                .map_err(|e| Error::failed(format!("cannot write the record as JSON: {e}")))?;
            println!("{json}");
        } else {
            if several {
                println!("{}", path.display());
            }
            print_table(&environment);
        }
    }
    Ok(())
}

fn describe(path: &Path, settings: &Settings) -> Result<Environment> {
    let real = path.canonicalize().map_err(|e| Error::io("find", path, &e))?;
    let targets = managed::from_environment();
    let managed = targets.iter().find(|target| real.starts_with(&target.path));
    environment::gather(&Subject {
        label: managed.map_or("", |target| target.label.as_str()),
        path: &real,
        managed,
        profile: settings.profile.name(),
        cache: settings.cache.map_or("auto", |method| method.name()),
    })
}

/// The table's order is that of the list of fields: related ones stand together.
fn print_table(environment: &Environment) {
    let classes = [
        (Class::Identity, &environment.identity, "identity: a difference forbids a comparison"),
        (Class::Kernel, &environment.kernel, "kernel: shown, never refused"),
        (Class::Boot, &environment.boot, "boot: kept, not compared"),
    ];
    let width = FIELDS.iter().map(|field| field.name.len()).max().unwrap_or_default();
    for (class, found, heading) in classes {
        println!("{heading}");
        let listed = FIELDS.iter().filter(|field| field.class == class).map(|field| field.name);
        let others = found.keys().map(String::as_str).filter(|name| !FIELDS.iter().any(|field| field.name == *name));
        for name in listed.chain(others) {
            if let Some(value) = found.get(name) {
                println!("  {name:width$}  {value}");
            }
        }
    }
}

fn print_fields() {
    let width = FIELDS.iter().map(|field| field.name.len()).max().unwrap_or_default();
    for field in FIELDS {
        println!("{:8}  {:width$}  {}", field.class.name(), field.name, field.meaning);
    }
    for (name, tolerance) in TOLERANCES {
        println!("\n{name} may differ by {} %.", tolerance * 100.0);
    }
}
