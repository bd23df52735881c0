//! The one file that knows virtme-ng's and QEMU's command lines.
//!
//! virtme-ng describes the machine for a kernel (`vng --dry-run`); QEMU is then started directly, so that it is this
//! process' own child, and boots the initramfs of [`super::initramfs`] in place of virtme's, so that nothing in the guest
//! waits for the host before the results are brought out.

use super::clock::Clock;
use super::plan;
use crate::target::mkfs::find_program;
use crate::{Error, Result, units};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The virtme-ng that is known to work, and how it is installed.
const VIRTME_NG: ((u32, u32), &str) = ((1, 42), "pip install virtme-ng==1.42 (or: pipx install virtme-ng==1.42)");
/// The QEMU that is known to work, and how it is installed.
const QEMU: ((u32, u32), &str) = ((7, 2), "apt-get install qemu-system-x86 busybox-static kmod");

/// The tag under which virtme-ng exports the first `--rwdir`.
pub const SHARE_TAG: &str = "virtme.initmount0";

/// The processor under the instruction clock: all that QEMU emulates but the two flags by which kernels copy and clear with
/// `rep movsb` and `rep stosb`. Each byte of those is an instruction, so that a page took 4.1 µs to clear, and most of a walk's
/// figures was copies. With words of eight bytes it takes 0.5 µs (docs/VM.md).
const INSTRUCTION_CPU: &str = "max,-erms,-fsrm";

/// Kernel arguments that every guest boots with, and why:
/// the layout of the kernel is the same in every boot (nokaslr); /dev/kmsg takes every line (printk.devkmsg);
/// no watchdog mistakes skipped idle time for a hang (nowatchdog); an oops ends the machine, which would else wait for the locks of
/// the process that died (oops=panic); a built-in null_blk makes no disk of its own (null_blk.nr_devices=0).
const KERNEL_ARGUMENTS: [&str; 5] =
    ["nokaslr", "printk.devkmsg=on", "nowatchdog", "oops=panic", "null_blk.nr_devices=0"];

/// The programs, and what they say of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// vng.
    pub vng: PathBuf,
    /// Its version.
    pub vng_version: String,
    /// qemu-system-x86_64.
    pub qemu: PathBuf,
    /// Its version.
    pub qemu_version: String,
}

/// One machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The kernel's image.
    pub image: PathBuf,
    /// Guest memory, in MiB.
    pub memory_mib: u64,
    /// Virtual CPUs; one with the instruction clock.
    pub cpus: u32,
    /// Its clock.
    pub clock: Clock,
    /// Whether KVM is used (wall clock only).
    pub kvm: bool,
    /// Seeds everything random in the guest: the same kernel with the same seed does the same thing.
    pub seed: u32,
    /// Kernel arguments of the user.
    pub append: Vec<String>,
    /// What it boots into.
    pub initramfs: PathBuf,
    /// The host's directory that results come out to.
    pub share: PathBuf,
    /// Where virtme-ng's own status file goes.
    pub status_file: PathBuf,
}

impl Tools {
    /// Finds both programs and checks their versions.
    ///
    /// Errors: one is missing or too old; says the command that installs it.
    pub fn find() -> Result<Tools> {
        let (vng, vng_version) = tool("vng", "virtme-ng", VIRTME_NG)?;
        let (qemu, qemu_version) = tool("qemu-system-x86_64", "QEMU", QEMU)?;
        Ok(Tools { vng, vng_version, qemu, qemu_version })
    }
}

fn tool(program: &str, name: &str, (oldest, install): ((u32, u32), &str)) -> Result<(PathBuf, String)> {
    let path = find_program(program)
        .ok_or_else(|| Error::refused(format!("{name} is not installed: {program} is not in PATH; {install}")))?;
    let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::io("run", &path, &e).into_refusal().hint(install))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let Some(version) = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find(is_number) else {
        return Err(Error::refused(format!("{} does not say its version; {install}", path.display())));
    };
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < oldest {
        return Err(Error::refused(format!(
            "{name} {version} is too old: {}.{} is needed; {install}",
            oldest.0, oldest.1
        )));
    }
    Ok((path, version.to_string()))
}

impl Machine {
    /// The arguments for vng.
    pub fn vng_arguments(&self) -> Vec<String> {
        let mut words: Vec<String> =
            ["--dry-run", "--verbose", "--force-9p", "--disable-monitor"].map(String::from).into();
        if !self.kvm {
            words.push("--disable-kvm".to_string());
        }
        words.extend(["--run".to_string(), self.image.display().to_string()]);
        words.extend(["--cpus".to_string(), self.cpus.to_string()]);
        words.extend(["--memory".to_string(), format!("{}M", self.memory_mib)]);
        words.push(format!("--append={}", self.kernel_arguments().join(" ")));
        words.push(format!("--rwdir=fsgauge={}", self.share.display()));
        // Script mode: no terminal, `panic=-1`, and QEMU ends when the guest does. The script itself never runs.
        words.extend(["--exec", "true"].map(String::from));
        words
    }

    fn kernel_arguments(&self) -> Vec<String> {
        let fixed = KERNEL_ARGUMENTS.into_iter().map(String::from);
        [format!("rdinit={}", plan::INIT)].into_iter().chain(fixed).chain(self.append.iter().cloned()).collect()
    }

    /// What the benchmarks record as the kernel's command line: what is the same in every boot, and what the user added.
    pub fn recorded_command_line(&self) -> String {
        let fixed = KERNEL_ARGUMENTS.into_iter().map(String::from);
        fixed.chain(self.append.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    /// QEMU's command line, from the one that virtme-ng printed.
    ///
    /// Errors: it has not the form that is known.
    pub fn qemu_command(&self, printed: &str) -> Result<Vec<String>> {
        let unknown = |what: &str| {
            Error::failed(format!(
                "virtme-ng printed a command line without {what}; this fsgauge knows 1.42; {}",
                VIRTME_NG.1
            ))
        };
        let line = printed.lines().rev().find(|l| l.contains("-kernel ")).ok_or_else(|| unknown("-kernel"))?;
        let mut words = split_words(line).ok_or_else(|| unknown("closed quotes"))?;
        // Its own initramfs is an open file of a process that has ended.
        if let Some(at) = words.iter().position(|word| word == "-initrd") {
            words.drain(at..(at + 2).min(words.len()));
        }
        let status =
            words.iter_mut().find(|w| w.starts_with("file,id=ret,path=")).ok_or_else(|| unknown("a status file"))?;
        *status = format!("file,id=ret,path={}", self.status_file.display());
        let mut own: Vec<String> = vec!["-initrd".to_string(), self.initramfs.display().to_string()];
        // No CD drive, no SATA, no keyboard: nothing to be probed, and no interrupt of theirs under a benchmark.
        own.extend(["-nodefaults", "-machine", "sata=off,smbus=off,i8042=off"].map(String::from));
        if self.clock == Clock::Instructions {
            own.extend(["-icount", "shift=0,sleep=off"].map(String::from));
            // The last -cpu counts.
            own.extend(["-cpu", INSTRUCTION_CPU].map(String::from));
            // The date is part of what a guest does (journals, random numbers): the same for every boot.
            own.extend(["-rtc", "base=2026-01-01T00:00:00,clock=vm"].map(String::from));
            own.extend(["-seed".to_string(), self.seed.to_string()]);
        }
        words.extend(own);
        Ok(words)
    }

    /// Asks virtme-ng and returns QEMU's command line.
    ///
    /// Errors: vng failed (what it said), or printed something else.
    pub fn command(&self, tools: &Tools) -> Result<Vec<String>> {
        let mut command = Command::new(&tools.vng);
        command.args(self.vng_arguments()).stdin(Stdio::null()).current_dir("/");
        let output =
            command.env("PATH", path_with(&tools.vng)).output().map_err(|e| Error::io("run", &tools.vng, &e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
            return Err(Error::failed(format!(
                "virtme-ng cannot describe a machine for {}: {said}",
                self.image.display()
            )));
        }
        self.qemu_command(&String::from_utf8_lossy(&output.stdout))
    }

    /// What is recorded of the machine as part of the identity of a run.
    pub fn identity(&self, tools: &Tools, disk: &str) -> Vec<(String, String)> {
        let accelerator = if self.kvm { "kvm" } else { "tcg" };
        let cpu_model = match self.clock {
            Clock::Instructions => INSTRUCTION_CPU,
            _ if self.kvm => "host",
            _ => "max",
        };
        let fields = [
            ("vm.clock", self.clock.name().to_string()),
            ("vm.accelerator", accelerator.to_string()),
            ("vm.qemu", tools.qemu_version.clone()),
            ("vm.cpu_model", cpu_model.to_string()),
            ("vm.cpus", self.cpus.to_string()),
            ("vm.memory", units::format_size(self.memory_mib * units::MIB)),
            ("vm.disk", disk.to_string()),
            ("vm.guest", plan::GUEST_VERSION.to_string()),
        ];
        fields.map(|(name, value)| (name.to_string(), value)).into()
    }
}

/// virtme-ng's own interactive session: a shell under that kernel on this system, read-only below.
pub fn shell_command(tools: &Tools, image: &Path, memory_mib: u64, kvm: bool, append: &[String]) -> Command {
    let mut command = Command::new(&tools.vng);
    command.args(["--force-9p", "--run"]).arg(image).arg("--memory").arg(format!("{memory_mib}M"));
    if !kvm {
        command.arg("--disable-kvm");
    }
    if !append.is_empty() {
        command.arg(format!("--append={}", append.join(" ")));
    }
    command.env("PATH", path_with(&tools.vng));
    command
}

/// A machine under KVM, with the CPU that virtme-ng asks for, that boots a kernel and nothing more.
pub fn kvm_trial(tools: &Tools, image: &Path) -> Command {
    let mut command = Command::new(&tools.qemu);
    command.args(["-accel", "kvm", "-cpu", "host", "-machine", "q35", "-m", "256"]);
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel"]).arg(image);
    command.args(["-append", "console=ttyS0 earlyprintk=serial,ttyS0,115200 panic=-1"]);
    command
}

/// PATH with the folder of vng in front: it starts its other half by name.
fn path_with(vng: &Path) -> std::ffi::OsString {
    let folder = vng.parent().unwrap_or(Path::new("/"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&paths));
    // A folder with a `:` in its name cannot be in PATH at all.
    std::env::join_paths(all).unwrap_or(paths)
}

/// Splits what Python's shlex.join wrote: blanks between words, single quotes, `'"'"'` for a single quote.
fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.trim().chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            image: "/k/boot/vmlinuz-6.1".into(),
            memory_mib: 4096,
            cpus: 1,
            clock: Clock::Instructions,
            kvm: false,
            seed: 3,
            append: vec!["slub_debug=FZ".into()],
            initramfs: "/w/initramfs".into(),
            share: "/w/out".into(),
            status_file: "/w/status".into(),
        }
    }

    #[test]
    fn virtme_ng_is_asked_for_exactly_this() {
        assert_eq!(
            machine().vng_arguments().join(" "),
            "--dry-run --verbose --force-9p --disable-monitor --disable-kvm --run /k/boot/vmlinuz-6.1 --cpus 1 --memory 4096M \
             --append=rdinit=/init nokaslr printk.devkmsg=on nowatchdog oops=panic null_blk.nr_devices=0 \
             slub_debug=FZ --rwdir=fsgauge=/w/out --exec true"
        );
    }

    #[test]
    fn qemu_gets_what_virtme_ng_printed_and_our_clock_disk_and_seed() {
        let printed = "note\n/usr/bin/qemu -name virtme-ng -chardev file,id=ret,path=/tmp/virtme_ret1 -kernel /k/boot/vmlinuz-6.1 \
                       -append 'a=1 b='\"'\"'c d'\"'\"'' -initrd /proc/self/fd/6\n";
        let command = machine().qemu_command(printed).unwrap();
        let expected: Vec<&str> = vec![
            "/usr/bin/qemu",
            "-name",
            "virtme-ng",
            "-chardev",
            "file,id=ret,path=/w/status",
            "-kernel",
            "/k/boot/vmlinuz-6.1",
            "-append",
            "a=1 b='c d'",
            "-initrd",
            "/w/initramfs",
            "-nodefaults",
            "-machine",
            "sata=off,smbus=off,i8042=off",
            "-icount",
            "shift=0,sleep=off",
            "-cpu",
            "max,-erms,-fsrm",
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-seed",
            "3",
        ];
        assert_eq!(command, expected);
        for broken in ["", "qemu -kernel k", "qemu -kernel 'k"] {
            assert!(machine().qemu_command(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_recorded_of_the_command_line_does_not_differ_between_boots() {
        let other = Machine { share: "/elsewhere".into(), seed: 9, image: "/other".into(), ..machine() };
        assert_eq!(machine().recorded_command_line(), other.recorded_command_line());
        assert_eq!(
            other.recorded_command_line(),
            "nokaslr printk.devkmsg=on nowatchdog oops=panic null_blk.nr_devices=0 slub_debug=FZ"
        );
    }
}
