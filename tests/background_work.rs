//! A run on a filesystem that the kernel itself is still at work on says so.

mod common;

#[test]
fn a_run_beside_the_lazy_initialiser_says_so() {
    if !common::is_root() || !common::have(&["mkfs.ext4"]) {
        return;
    }
    let bench = common::bench("preallocation");
    let script = r#"
        truncate -s 8G "$W/images/lazy.img"
        mkfs.ext4 -q -F -N 4000000 -E lazy_itable_init=1 "$W/images/lazy.img"
        # init_itable=1000: rests 1000 times as long as it works, so that it is still at work when the bench looks.
        mount -o loop,init_itable=1000 "$W/images/lazy.img" "$W/m"
        FSGAUGE_PATH=$W/m FSGAUGE_PROFILE=quick CRITERION_HOME=$W/h "$BENCH" --bench --noplot --measurement-time 0.1 \
            --exact preallocation/ext4/fallocate 2>&1 >/dev/null
        un
    "#;
    let said = common::must_succeed(script, &[("BENCH", &bench)]);
    assert!(said.contains("ext4lazyinit is at work"), "{said}");
}
