//! The machine and its settings.

use super::Found;
use crate::sys::{c_library, cpu, sysctl};

/// What the boot loader says of its own files: it differs with every kernel, and means nothing.
const NOT_COMPARED: [&str; 3] = ["BOOT_IMAGE=", "initrd=", "root="];

pub(super) fn found() -> Vec<Found> {
    let cpu = cpu::describe();
    let parameter = |name: &'static str| (name, sysctl::parameter(name));
    vec![
        ("cpu_model", cpu.model.clone()),
        ("cpu_count", cpu::count().map(|count| count.to_string())),
        ("memory", memory("MemTotal")),
        ("governor", cpu::governor()),
        parameter("vm.dirty_ratio"),
        parameter("vm.dirty_background_ratio"),
        parameter("vm.dirty_bytes"),
        parameter("vm.dirty_background_bytes"),
        parameter("vm.dirty_expire_centisecs"),
        parameter("vm.dirty_writeback_centisecs"),
        ("libc", Some(c_library::version())),
        ("kernel_command_line", sysctl::read("/proc/cmdline").map(|line| compared_words(&line))),
        ("virtualisation", virtualisation(cpu.under_hypervisor)),
    ]
}

/// A line of /proc/meminfo, as `8154232 kB`.
pub(super) fn memory(key: &str) -> Option<String> {
    let text = sysctl::read("/proc/meminfo")?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| *name == key).map(|(_, value)| value.trim().to_owned())
}

fn compared_words(line: &str) -> String {
    let words = line.split_whitespace().filter(|word| !NOT_COMPARED.iter().any(|start| word.starts_with(start)));
    words.collect::<Vec<_>>().join(" ")
}

fn virtualisation(under_hypervisor: bool) -> Option<String> {
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        return None;
    }
    if !under_hypervisor {
        return Some("none".into());
    }
    let words =
        ["sys_vendor", "product_name"].into_iter().filter_map(|f| sysctl::read(format!("/sys/class/dmi/id/{f}")));
    let words = words.collect::<Vec<_>>().join(" ");
    Some(if words.is_empty() { "unnamed virtual machine".into() } else { words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_loaders_words_are_left_out_and_no_others() {
        let line = "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=1 ro rootflags=noatime initrd=\\initrd quiet";
        assert_eq!(compared_words(line), "ro rootflags=noatime quiet");
    }

    #[test]
    fn the_memory_is_a_number_and_its_unit() {
        let memory = memory("MemTotal").unwrap();
        assert!(memory.strip_suffix(" kB").is_some_and(|number| number.parse::<u64>().is_ok()), "{memory}");
    }
}
