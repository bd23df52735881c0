#!/usr/bin/env bash
# Measures two sides in alternation and gates them, on any runner. Run it from fsgauge's source tree, or set FSGAUGE to the
# command of an unpacked bundle. Results go to $OUT; the exit code is the gate's: 0 no regression, 1 a regression, 2 no comparison.
#
#   BASE=fs=ext4 CANDIDATE=fs=ext4-no-extents ACCEPT="target mkfs mkfs_features" docs/ci/gate.sh [criterion arguments]
#
# ROUNDS (5), FILTER (criterion's), RUN_OPTIONS (of `fsgauge run`, such as --in-memory), FSGAUGE, OUT and CRITERION_HOME may be set.
#
# BASE and CANDIDATE are LABEL=TARGET with one LABEL, as `fsgauge targets` lists them. To compare kernels, run the first loop
# under each kernel with one side only, move the results with `fsgauge export` and `import`, and gate them.
set -euo pipefail

base=${BASE:?set BASE to LABEL=TARGET}
candidate=${CANDIDATE:?set CANDIDATE to LABEL=TARGET}
rounds=${ROUNDS:-5}
out=${OUT:-gate-results}
fsgauge=${FSGAUGE:-target/release/fsgauge}
run_options=(${RUN_OPTIONS:-})
accept=()
for field in ${ACCEPT:-}; do accept+=(--accept-difference "$field"); done

[[ -z ${FILTER:-} ]] || set -- "$FILTER" "$@"
mkdir -p "$out"
export CRITERION_HOME=${CRITERION_HOME:-$(cd "$out" && pwd)/criterion}

measure() { # measure SIDE TARGET ROUND [criterion arguments]: one round more of a side
  local side=$1 target=$2 round=$3; shift 3
  "$fsgauge" run --target "$target" --save-baseline "$side" --rounds "$round" --resume "${run_options[@]}" -- "$@"
}

# A B, B A, A B …: neither side is always first.
for ((round = 1; round <= rounds; round++)); do
  if ((round % 2)); then
    measure before "$base" "$round" "$@"; measure after "$candidate" "$round" "$@"
  else
    measure after "$candidate" "$round" "$@"; measure before "$base" "$round" "$@"
  fi
done

# No pipe here: `gate | tee` would end with tee's status.
status=0
"$fsgauge" gate before after "${accept[@]}" --format terminal \
  --format markdown --output "$out/gate.md" --format json --output "$out/gate.json" \
  --format junit --output "$out/gate.xml" || status=$?

for side in before after; do
  rm -f "$out/$side.tar.gz"
  "$fsgauge" export "$side" "$out/$side.tar.gz"
done
exit "$status"
