#!/bin/sh
# count_cases.sh LOG: reads CTest's LastTest.log and prints "passed failed" in single cases: those that cmocka names, and one for
# each program of another kind. A program that failed without naming a failed case counts as one failure.
awk '
    / Testing: / { ok = bad = 0 }
    /^\[ +OK \] / { ok++ }
    /^\[  FAILED  \] [0-9]+ test/ { bad = $4 }
    /^Test Passed\./ { passed += ok ? ok : 1; ended = 1 }
    /^Test (Failed|Timeout|Skipped|Not Run)/ { passed += ok; failed += bad ? bad : 1; ended = 1 }
    END { print passed + 0, failed + 0 }' "$1"
