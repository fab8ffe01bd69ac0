#!/bin/sh
# Checks the eval files of this example, lists them, and shows what slips look like.
set -e
cd "$(dirname "$0")"

echo '$ assay validate --strict evals/'
assay validate --strict evals/ 2>&1

echo
echo "What evals/ holds:"
python - <<'END'
import assay

print(f"  {'suite':<24}{'tier':<12}cases")
for suite in assay.load("evals/"):
    print(f"  {suite.name:<24}{suite.tier:<12}{len(suite):>5}")
END

echo
echo '$ assay regression list evals/'
assay regression list evals/

echo
echo '$ assay validate broken/'
code=0
assay validate broken/ 2>&1 || code=$?
echo "exit code $code"
if [ "$code" -ne 2 ]; then
    echo "the slips in broken/ should have ended with exit code 2" >&2
    exit 1
fi
