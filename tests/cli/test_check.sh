# `qkv check`: what it prints, that a seed repeats it, and its options.
. ./lib.sh
share='[0-9]\.[0-9]\{3\}'
shares="o $share, lse $share, d_q $share, d_k $share, d_v $share, d_sinks $share, d_mask $share, d_distance_bias $share"

run check --cases 8 --pairs 0
code 0
no_err
isas=$("$qkv" info | sed -n 's/^instructions  *\(.*\) (used.*/\1/p')
out_like "^instruction sets: $isas\$"
out_like '^parts  8 cases, 0 failed$'
out_like '^whole  8 cases, 0 failed$'
out_like '^decode 8 cases, 0 failed$'
out_like "^largest share of a bound: $shares\$"
out_like "^same bits: [1-9][0-9]* comparisons, 0 mismatches\$"
out_like '^digest of the results: [0-9a-f]\{16\}$'
cp "$folder/out" "$folder/first"
run check --cases 8 --pairs 0 --seed 1
check "the same seed gives something else" cmp -s "$folder/first" "$folder/out"
run check --cases 8 --pairs 0 --seed 9000
code 0
check "another seed gives the same" sh -c "! cmp -s '$folder/first' '$folder/out'"
check "a bound is passed" sh -c "! grep -q ' [1-9]\.' '$folder/out'"

run check --cases 2 --pairs 0 --isa scalar --json
code 0
no_err
number='[0-9][0-9.e-]*'
out_like "^{\"isas\":\[\"scalar\"\],\"seed\":1,\"parts\":{\"n_cases\":2,\"n_failed\":0},\"whole\":{\"n_cases\":2,\"n_failed\":0},\"decode\":{\"n_cases\":2,\"n_failed\":0},\"pairs\":{\"n_cases\":0,\"n_failed\":0},\"pairs_of\":{},\"largest_share_of_bound\":{\"o\":$number,\"lse\":$number,\"d_q\":$number,\"d_k\":$number,\"d_v\":$number,\"d_sinks\":$number,\"d_mask\":$number,\"d_distance_bias\":$number},\"compared\":[1-9][0-9]*,\"mismatches\":0,\"first_failure\":null}\$"

run check --cases 1 --isa scalar --table
code 0
no_err
out_like '^pairs  [1-9][0-9]* cases, 0 failed$'
out_like '^  in     f32  *[1-9][0-9]* pairs, [1-9][0-9]* numbers, largest share 0\.[0-9]\{3\}$'
out_like '^bit mask   GQA  *[1-9][0-9]* 0\.[0-9]\{3\}'
out_like '^bool mask  bit mask    none: a call has one explicit mask'
run check --isa vax
code 2
no_out
err_like "^qkv check: --isa: 'vax' is not one of those usable here: scalar"
usage check "--cases: '0' is not a whole number from 1 to 1000000" check --cases 0
usage check "--pairs: '13' is not a whole number from 0 to 12" check --pairs 13
usage check "--seed: '-1' is not a whole number from 0 to 4611686018427387903" check --seed -1
usage check "unexpected argument 'x'" check x
usage check "--table together with --json" check --cases 1 --pairs 0 --table --json
finish
