#!/usr/bin/env bash
# How often is a comparison of one unchanged kernel wrong? Makes SUITES (20) suites A against A, ROUNDS (4) rounds a side in
# alternation, each on a fresh filesystem, and counts the false verdicts of plain criterion and of the gate.
# Run it as root from fsgauge's source tree; 20 suites took 16 minutes.
set -euo pipefail
suites=${SUITES:-20} rounds=${ROUNDS:-4} out=${OUT:-unchanged-suites}
fsgauge=${FSGAUGE:-target/release/fsgauge}
mkdir -p "$out"
export FSGAUGE_PROFILE=quick CRITERION_HOME=${CRITERION_HOME:-$(cd "$out" && pwd)/criterion}
benches=(preallocation interleaved_streams)

wrong=0 compared=0 plain=0 verdicts=0
for ((suite = 1; suite <= suites; suite++)); do
  for ((round = 1; round <= rounds; round++)); do
    if ((round % 2)); then sides="a b"; else sides="b a"; fi
    for side in $sides; do
      "$fsgauge" run --in-memory --size 1GiB --target fs=ext4 "${benches[@]/#/--bench=}" --save-baseline "s$suite$side" \
        --rounds "$round" --resume -- --noplot --quiet --measurement-time 0.3 >>"$out/log" 2>&1
    done
  done
  status=0
  "$fsgauge" gate "s${suite}a" "s${suite}b" --format json --output "$out/gate$suite.json" || status=$?
  false_verdicts=$(jq '[.benchmarks[].verdict | select(. == "regressed" or . == "improved")] | length' "$out/gate$suite.json")
  compared=$((compared + 1)); ((false_verdicts == 0)) || wrong=$((wrong + 1))
  for ((round = 1; round <= rounds; round++)); do
    for bench in "${benches[@]}"; do
      said=$(FSGAUGE_PATH=fs=/tmp cargo bench --bench "$bench" -- --noplot --load-baseline "s${suite}b@$round" \
        --baseline "s${suite}a@$round" 2>/dev/null)
      plain=$((plain + $(grep -cE 'Performance has (regressed|improved)' <<<"$said" || true)))
      verdicts=$((verdicts + $(grep -cE 'Performance has|No change in performance|Change within noise' <<<"$said" || true)))
    done
  done
  echo "suite $suite: gate exit $status, $false_verdicts false verdicts; so far $wrong of $compared suites wrong by the gate," \
    "$plain of $verdicts comparisons by criterion alone"
done
