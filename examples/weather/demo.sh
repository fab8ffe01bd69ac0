#!/bin/sh
# Shows what a build does: run an agent, set the baseline, change the agent, run it again.
# Exits with 0 if every step ended as expected, otherwise with 1.
set -eu

# A copy, so that the store and the reports of the demo stay out of the repository. It is kept, to be
# looked at, unless the demo fails.
copy=$(mktemp -d)
keep=no
trap '[ "$keep" = yes ] || rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM
cp -R "$(dirname "$0")/." "$copy"
rm -rf "$copy/.assay"
cd "$copy"
# Settings of the caller must not affect these runs.
unset ASSAY_STORE ASSAY_JUDGE ASSAY_SEED_MANIFEST GITHUB_ACTIONS

# How many lines of a command's output are shown.
most=1000

# step EXIT_CODE COMMAND...: run a command, show its output, and check its exit code.
step() {
    wanted=$1
    shift
    echo
    echo "\$ $*"
    code=0
    "$@" >printed 2>&1 || code=$?
    head -n "$most" printed
    if [ "$(wc -l <printed)" -gt "$most" ]; then
        echo ...
        tail -n 1 printed
    fi
    echo "exit code $code"
    [ "$code" -eq "$wanted" ] || fail "expected exit code $wanted"
}

# printed TEXT: check that the last command printed this text.
printed() {
    grep -qF -- "$1" printed || fail "expected the output to contain: $1"
}

fail() {
    echo "the demo failed: $1" >&2
    exit 1
}

echo "The agent is in examples/weather/agent.py, its cases are in examples/weather/evals."
echo "No model is called: the agent is a few rules, and the judge is scripted in assay.yaml."

echo
echo "1. Check the eval files."
step 0 assay validate --strict evals/

echo
echo "2. Run the deployed agent. One case fails: it does not know Fahrenheit."
step 1 assay run evals/ --target v1
printed both-units
step 0 assay baseline update main

echo
echo "3. Change the agent: it knows Fahrenheit now, but no longer checks for warnings. The pass rate"
echo "   is the same, but a critical case got worse. It fails every re-ask, so the build fails."
step 1 assay run evals/ --target v2 --baseline main -o junit.xml -o report.html
printed oslo-alert
printed '- get_alerts(city="Oslo")'
printed 'gate regression: failed'

echo
echo "4. Validate a file with mistakes."
most=4
step 2 assay validate broken/

keep=yes
echo
echo "The demo worked: the build of the change failed, and the report says why. Look at it in a browser:"
echo "  $copy/report.html"
echo "or look at both runs, case by case:"
echo "  cd $copy && $(command -v assay) view latest"
