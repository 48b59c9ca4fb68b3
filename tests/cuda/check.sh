#!/bin/sh
# Builds the CUDA device with its tests and runs them on this machine's GPU, from the repository root:
#
#   tests/cuda/check.sh [STAGE..]     default: small ops forward memcheck racecheck synccheck
#
# Each stage has a time limit and says how long it took; all are run even when one fails.
set -u
build=build-cuda-test
test=$build/test_cuda
failed=0

stage() { # name, limit in seconds, command
    name=$1 limit=$2
    shift 2
    start=$(date +%s)
    timeout "$limit" "$@"
    rc=$?
    echo "== $name: exit $rc after $(($(date +%s) - start)) s"
    [ $rc -eq 0 ] || failed=1
}

sanitizer() { # tool
    stage "$1" 150 compute-sanitizer --tool "$1" --error-exitcode 9 "$test" $build small
}

cmake --preset cuda-test > /dev/null && cmake --build $build | tail -n 3 || exit 1
[ $# -gt 0 ] || set -- small ops forward memcheck racecheck synccheck
for what in "$@"; do
    case $what in
    small | forward | bench) stage "$what" 150 "$test" $build "$what" ;;
    bench-bf16) stage "$what" 200 "$test" $build bench bf16 ;;
    ops)
        for preset in nano micro odd wide flint; do
            stage "ops $preset" 150 "$test" $build ops $preset
        done
        ;;
    memcheck | racecheck | synccheck) sanitizer "$what" ;;
    profile) # microseconds by kernel, of eight layers
        stage profile 120 ncu --clock-control none --csv --page raw \
            --metrics gpu__time_duration.sum,dram__bytes_read.sum \
            --kernel-name 'regex:^(small_linear|big_linear|attend|finish|choose|slot|down|combine|embed|norm|sort|list|grouped)' \
            --log-file "${OUT:-.}/profile.csv" "$test" $build profile
        ;;
    *)
        echo "unknown stage $what"
        failed=1
        ;;
    esac
done
exit $failed
