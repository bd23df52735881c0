//! What a bench executable refuses: before the first benchmark, in one line, with status 2, and without a trace.

mod bench_support;
mod common;

use bench_support::run;

#[test]
fn a_path_that_cannot_be_measured_is_refused() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; mkdir "$W/m/work" "$W/m/a:b"; echo keep >"$W/m/work/precious"; echo keep >"$W/m/mine"; keep; ls -A / >"$W/root"
at() { local path=$1 text=$2; refuses "$text" env FSGAUGE_PATH="$path" "$PREALLOCATION" --bench; }
at "" "FSGAUGE_PATH is empty"
at / "is the root directory"
at /proc/self/root "is the root directory"
at x=/ "is the root directory"
at relative "is relative"
at /nonexistent/x "/nonexistent/x: No such file or directory"
at "$W/m/mine" "is not a directory"
at "$W/m/mine/x" "Not a directory"
at "$W/m/a:b" "contains \`:\`"
at "$W/m::$W/m" "has an empty path"
at "report=$W/m" "report"
at "$W/m:$W/m/work" "two targets have the label \`ext4\`"
says "FSGAUGE_PATH=a=.*:b="
at "a=$W/m:b=$W/m" "$W/m is given twice"
at "/$(printf 'x%.0s' {1..5000})" "File name too long"
ln -s loop "$W/loop"; at "$W/loop" "Too many levels of symbolic links"
nothing_left; is "$(ls -A /)" "$(cat "$W/root")" "the root directory"

mount -o remount,ro "$W/m"
at "$W/m" "is mounted read-only"
un
[ ! -e "$W/h" ] || fail "a refused run made the directory for results"
"#,
    );
}

#[test]
fn a_path_as_long_as_paths_may_be_is_measured_and_a_longer_one_refused() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M
name=$(printf 'd%.0s' {1..200})
deep=$W/m; cd "$W/m"
while [ ${#deep} -lt 2990 ]; do mkdir "$name"; cd "$name"; deep=$deep/$name; done
keep
ends 0 env FSGAUGE_PATH="$deep" "$PREALLOCATION" --bench --noplot --measurement-time 0.1 ext4/fallocate
while [ ${#deep} -lt 3880 ]; do mkdir "$name"; cd "$name"; deep=$deep/$name; done
last=$(printf 'e%.0s' $(seq 1 $((4080 - ${#deep} - 1)))); mkdir "$last"; cd /
refuses "File name too long" env FSGAUGE_PATH="$deep/$last" "$PREALLOCATION" --bench
"#,
    );
}

#[test]
fn settings_and_arguments_that_make_no_sense_are_refused() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
refuses "\`fast\` is not a profile: choose quick, standard or published" env FSGAUGE_PROFILE=fast "$READS" --bench
refuses "\`hot\` is not a cache method: choose auto, remount, drop_caches or fadvise" env FSGAUGE_CACHE=hot "$READS" --bench
bad() { local text=$1; shift; refuses "$text" "$PREALLOCATION" --bench "$@"; }
bad "baseline \`old\` is not there, nor any other" --baseline old
bad "baseline \`old\` is not there, nor any other" --load-baseline old --baseline old
bad "a/b" --baseline a/b
bad ".." --save-baseline ..
bad "new" --save-baseline new
bad "sample-size" --sample-size 5
bad "measurement-time" --measurement-time 0
bad "--no-such-flag" --no-such-flag
bad "is not a regular expression" "("
bad "--load-baseline" --load-baseline old --save-baseline other
bad "--profile-time" --profile-time 0.5
bad "banana" --color banana
bad "--verbose" --quiet --verbose
command -v gnuplot >/dev/null || bad "gnuplot is not installed" --plotting-backend gnuplot
refuses "use cargo bench" env CARGO_CRITERION_PORT=1 "$PREALLOCATION" --bench
refuses "/proc/nope" env CRITERION_HOME=/proc/nope "$PREALLOCATION" --bench
says "set CRITERION_HOME"
touch "$W/file"
refuses "$W/file" env CRITERION_HOME="$W/file" "$PREALLOCATION" --bench
nothing_left
"#,
    );
}

#[test]
fn too_little_space_or_too_few_inodes_are_found_before_the_first_benchmark() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M -N 64; keep
refuses "profile standard needs" env FSGAUGE_PROFILE=standard "$PREALLOCATION" --bench
says "MiB free, .* FSGAUGE_PROFILE=quick would fit"
refuses "inodes free, profile quick needs" "$LATENCY" --bench
says "no profile fits"
nothing_left; un
mk ext2 20M; dd if=/dev/zero of="$W/m/other" bs=1M count=10 status=none; keep
refuses "no profile fits: use a larger filesystem" "$PREALLOCATION" --bench
nothing_left; un
mount -t tmpfs -o size=8m none "$W/m"; keep
refuses "profile quick needs" "$PREALLOCATION" --bench mmap_memset
nothing_left
"#,
    );
}

#[test]
fn a_cache_method_asked_for_by_name_is_refused_where_it_cannot_be_had() {
    run(
        &["mkfs.ext4", "setpriv"],
        r#"
chmod 755 "$W"; mkdir "$W/bin" "$W/h"; cp "$READS" "$W/bin/reads"; chmod 777 "$W/h"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
mount -t tmpfs none "$W/m"; keep
refuses "loses its files when unmounted" env FSGAUGE_CACHE=remount "$READS" --bench
un
mk ext4 64M; mkdir -m 777 "$W/m/own"; chown 65534 "$W/m/own"; keep
for method in remount drop_caches; do
  refuses "root" nobody env FSGAUGE_CACHE=$method FSGAUGE_PATH="$W/m/own" "$W/bin/reads" --bench
done
mkdir "$W/m/other" && rmdir "$W/m/other"
refuses "cannot create a directory in $W/m: Permission denied" nobody "$W/bin/reads" --bench
cd "$W/m"; refuses "busy" env FSGAUGE_CACHE=remount "$READS" --bench; cd /
nothing_left
mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys
refuses "/proc/sys/vm/drop_caches cannot be written" env FSGAUGE_CACHE=drop_caches "$READS" --bench
nothing_left
"#,
    );
}

#[test]
fn two_measuring_runs_on_one_path_do_not_measure_each_other() {
    run(
        &["mkfs.ext4"],
        r#"
mk ext4 64M; keep
FSGAUGE_PATH=$W/m "$PREALLOCATION" --bench --noplot --profile-time 60 ext4/fallocate >"$W/first" 2>&1 &
first=$!
await grep -q ' of ' "$W/first" || fail "the first run did not begin"
refuses "another fsgauge run is measuring on" "$STREAMS" --bench
ln -s "$W/m" "$W/link"
refuses "another fsgauge run is measuring on" env FSGAUGE_PATH="x=$W/link" "$STREAMS" --bench
# Those that do not measure take no lock.
ends 0 "$STREAMS" --bench --list
ends 0 "$STREAMS" --test
kill -TERM "$first"; got=0; wait "$first" || got=$?
is "$got" 143 status
nothing_left
"#,
    );
}
