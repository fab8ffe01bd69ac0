#!/bin/sh
# What a build would show: an agent is asked, becomes the baseline, and is changed.
# Ends with 0 when every step ended as it should, and with 1 when one did not.
set -eu

# A copy, so that the store and the reports of the demo stay out of the repository.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM
cp -R "$(dirname "$0")/." "$copy"
rm -rf "$copy/.assay"
cd "$copy"
# What the caller has set for runs of its own is not meant for these.
unset ASSAY_STORE ASSAY_JUDGE ASSAY_SEED_MANIFEST GITHUB_ACTIONS

# How many lines of a command's output are shown.
most=1000

# step EXIT_CODE COMMAND...: show a command and what it prints; its exit code must be this one.
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
    [ "$code" -eq "$wanted" ] || amiss "the exit code should be $wanted"
}

# The last command must have printed this.
printed() {
    grep -qF -- "$1" printed || amiss "it should have printed: $1"
}

amiss() {
    echo "the demo is not as it should be: $1" >&2
    exit 1
}

echo "The agent is in examples/weather/agent.py, its cases are in examples/weather/evals."
echo "No model is asked: the agent is a few rules, and the judge a script in assay.yaml."

echo
echo "1. The eval files of the agent are in order."
step 0 assay validate --strict evals/

echo
echo "2. The agent as it is deployed. One case fails: it knows no Fahrenheit."
step 1 assay run evals/ --target v1
printed both-units
step 0 assay baseline update main

echo
echo "3. A change: it learns Fahrenheit, and forgets to look for warnings. The pass rate is the"
echo "   same, but a critical case got worse. It is asked again, keeps failing, and fails the build."
step 1 assay run evals/ --target v2 --baseline main -o junit.xml -o summary.md
printed oslo-alert
printed '- get_alerts(city="Oslo")'
printed 'gate regression: failed'

echo
echo "4. A file with mistakes never reaches the agent."
most=4
step 2 assay validate broken/

echo
echo "All as it should be: the build of the change failed, and said why."
