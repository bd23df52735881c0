//! The kernel: its version, how it was built, what it does about the processor's faults.

use super::Found;
use crate::sys::sysctl;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Options of the kernel's configuration that make it slower, and that a test kernel may have: lib/Kconfig.debug,
/// lib/Kconfig.kasan and its like, mm/Kconfig.debug, security/Kconfig.hardening, and the filesystems' own.
const DEBUG_OPTIONS: [&str; 37] = [
    "KASAN",
    "KCSAN",
    "KMSAN",
    "UBSAN",
    "KFENCE",
    "KCOV",
    "GCOV_KERNEL",
    "LOCKDEP",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_RWSEMS",
    "DEBUG_SPINLOCK",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_PREEMPT",
    "DEBUG_PAGEALLOC",
    "DEBUG_PAGE_REF",
    "DEBUG_KMEMLEAK",
    "DEBUG_OBJECTS",
    "DEBUG_VM",
    "DEBUG_LIST",
    "DEBUG_SG",
    "DEBUG_PER_CPU_MAPS",
    "SLUB_DEBUG_ON",
    "PAGE_OWNER",
    "PAGE_POISONING",
    "PAGE_TABLE_CHECK_ENFORCED",
    "INIT_ON_ALLOC_DEFAULT_ON",
    "INIT_ON_FREE_DEFAULT_ON",
    "FAULT_INJECTION",
    "XFS_DEBUG",
    "XFS_WARN",
    "BTRFS_DEBUG",
    "BTRFS_ASSERT",
    "F2FS_CHECK_FS",
];

/// Words of the command line that switch such an option on or off at boot.
const DEBUG_WORDS: [&str; 14] = [
    "slub_debug",
    "slab_debug",
    "page_poison",
    "page_owner",
    "debug_pagealloc",
    "init_on_alloc",
    "init_on_free",
    "kasan",
    "kfence",
    "kmemleak",
    "failslab",
    "fail_page_alloc",
    "ftrace",
    "trace_event",
];

/// Preemption models of kernel/Kconfig.preempt, the most preemptible first.
const PREEMPT_MODELS: [(&str, &str); 5] = [
    ("PREEMPT_RT", "rt"),
    ("PREEMPT", "full"),
    ("PREEMPT_LAZY", "lazy"),
    ("PREEMPT_VOLUNTARY", "voluntary"),
    ("PREEMPT_NONE", "none"),
];

pub(super) fn found() -> Vec<Found> {
    let release = sysctl::parameter("kernel.osrelease");
    let version = sysctl::parameter("kernel.version");
    let command_line = sysctl::read("/proc/cmdline");
    let configuration = release.as_deref().and_then(Configuration::of);
    let preempt = preempt(version.as_deref().unwrap_or_default(), configuration.as_ref(), command_line.as_deref());
    vec![
        ("mitigations", mitigations()),
        ("transparent_hugepages", sysctl::chosen("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("preempt", preempt),
        ("hz", configuration.as_ref().and_then(|configuration| configuration.value("HZ").map(str::to_owned))),
        ("clocksource", sysctl::read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("debug_options", configuration.as_ref().map(Configuration::debug_options)),
        ("debug_boot_options", command_line.as_deref().map(debug_boot_options)),
        ("release", release),
        ("version", version),
    ]
}

/// The options of a kernel's configuration that are set, `NAME=value` each.
struct Configuration(Vec<String>);

impl Configuration {
    /// Reads the running kernel's: from itself, else from where distributions put it.
    fn of(release: &str) -> Option<Self> {
        let files = [
            "/proc/config.gz".to_owned(),
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
            format!("/lib/modules/{release}/build/.config"),
        ];
        files.iter().find_map(|file| {
            let opened = File::open(file).ok()?;
            let reader: Box<dyn Read> =
                if file.ends_with(".gz") { Box::new(flate2::read::GzDecoder::new(opened)) } else { Box::new(opened) };
            Configuration::parse(BufReader::new(reader))
        })
    }

    fn parse(reader: impl BufRead) -> Option<Self> {
        let lines: Vec<String> = reader.lines().collect::<std::io::Result<_>>().ok()?;
        let set = lines.iter().filter_map(|line| line.strip_prefix("CONFIG_")).map(str::to_owned).collect::<Vec<_>>();
        (!set.is_empty()).then_some(Configuration(set))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    fn is_set(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    fn debug_options(&self) -> String {
        words_or_none(DEBUG_OPTIONS.into_iter().filter(|name| self.is_set(name)))
    }
}

fn words_or_none<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    if words.is_empty() { "none".into() } else { words.join(" ") }
}

fn debug_boot_options(command_line: &str) -> String {
    let is_debug = |word: &&str| {
        let name = word.split(['=', '.']).next().unwrap_or_default();
        DEBUG_WORDS.contains(&name)
    };
    words_or_none(command_line.split_whitespace().filter(is_debug))
}

/// `dynamic, none`: whether the model can be chosen at boot, and the model.
fn preempt(version: &str, configuration: Option<&Configuration>, command_line: Option<&str>) -> Option<String> {
    let in_version = |word: &str| version.split_whitespace().any(|w| w == word);
    let asked = command_line.and_then(|line| line.split_whitespace().find_map(|word| word.strip_prefix("preempt=")));
    // debugfs has the model in force, for root.
    let running = sysctl::read("/sys/kernel/debug/sched/preempt").and_then(|text| {
        text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(model, _)| model.to_owned())
    });
    let built = configuration.and_then(|c| PREEMPT_MODELS.iter().find(|(option, _)| c.is_set(option)));
    let named = || PREEMPT_MODELS.iter().find(|(word, _)| in_version(word)).map(|(_, model)| (*model).to_owned());
    let dynamic = in_version("PREEMPT_DYNAMIC");
    let asked = asked.filter(|_| dynamic).map(str::to_owned);
    let model = running.or(asked).or_else(|| built.map(|(_, model)| (*model).to_owned())).or_else(named);
    match (dynamic, model) {
        (true, Some(model)) => Some(format!("dynamic, {model}")),
        (true, None) => Some("dynamic".into()),
        (false, model) => model,
    }
}

/// `spectre_v1: usercopy/swapgs barriers and __user pointer sanitization, …`: the faults that this processor has.
fn mitigations() -> Option<String> {
    let entries = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities").ok()?.flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| summarised(&entry.file_name().to_string_lossy(), &sysctl::read(entry.path())?))
        .collect();
    found.sort();
    Some(if found.is_empty() { "none needed".into() } else { found.join(", ") })
}

/// The first of the measures stands for all: it is the one with the price (`Retpolines; IBPB: conditional; …`).
fn summarised(name: &str, state: &str) -> Option<String> {
    let state = state.trim();
    if state == "Not affected" {
        return None;
    }
    let measures = state.strip_prefix("Mitigation:").unwrap_or(state).trim();
    Some(format!("{name}: {}", measures.split([';', ',']).next().unwrap_or(measures).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(text: &str) -> Configuration {
        Configuration::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn debug_options_are_those_that_are_set() {
        let text = "CONFIG_HZ=250\nCONFIG_HAVE_ARCH_KASAN=y\n# CONFIG_KASAN is not set\nCONFIG_DEBUG_LIST=y\nCONFIG_LOCKDEP=y\nCONFIG_LOCKDEP_SUPPORT=y\n";
        let read = configuration(text);
        assert_eq!(read.debug_options(), "LOCKDEP DEBUG_LIST");
        assert_eq!(read.value("HZ"), Some("250"));
        assert_eq!(configuration("CONFIG_HZ_250=y\n").debug_options(), "none");
        assert!(Configuration::parse(&b"no configuration\n"[..]).is_none());
    }

    #[test]
    fn debug_words_are_found_on_the_command_line() {
        assert_eq!(
            debug_boot_options("quiet slub_debug=FZ kfence.sample_interval=0 ro"),
            "slub_debug=FZ kfence.sample_interval=0"
        );
        assert_eq!(debug_boot_options("quiet slub_debugger=1"), "none");
    }

    #[test]
    fn the_preemption_model_is_what_was_asked_for_else_what_was_built() {
        let built = configuration("CONFIG_PREEMPT_VOLUNTARY=y\n");
        assert_eq!(preempt("#1 SMP", Some(&built), Some("preempt=full")).as_deref(), Some("voluntary"));
        assert_eq!(preempt("#1 SMP PREEMPT_RT x", None, None).as_deref(), Some("rt"));
        assert_eq!(preempt("#1 SMP", None, None), None);
    }

    #[test]
    fn each_fault_is_summarised_by_its_first_measure() {
        let text = "Mitigation: Retpolines; IBPB: conditional; STIBP: disabled";
        assert_eq!(summarised("spectre_v2", text).as_deref(), Some("spectre_v2: Retpolines"));
        assert_eq!(
            summarised("mds", "Vulnerable: Clear CPU buffers attempted, no microcode").as_deref(),
            Some("mds: Vulnerable: Clear CPU buffers attempted")
        );
        assert_eq!(summarised("mds", "Not affected"), None);
    }
}
