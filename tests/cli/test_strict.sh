# qkv info --strict: the audit of a safetensors file, as a transcript.
. ./lib.sh
file=$folder/x.safetensors

# write HEADER DATA: both by the rules of printf's formats; the header is filled with spaces to a multiple of 8
write() {
    printf "$1" >"$folder/header"
    while [ $(($(wc -c <"$folder/header") % 8)) -ne 0 ]; do printf ' ' >>"$folder/header"; done
    write_as_it_is "$2"
}
write_as_it_is() {
    n=$(wc -c <"$folder/header")
    {
        printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\0\0\0\0\0\0"
        cat "$folder/header"
        printf "$1"
    } >"$file"
}
one() { printf '"%s":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 4)); }
# finding RULE OFFSET TEXT: the only one
finding() {
    run info --strict "$file"
    code 1
    no_err
    out "$(printf '%-19s  byte %-10d  %s\n1 finding' "$1" "$2" "$3")"
}

run info --strict "$model/model.safetensors"
code 0
no_err
out "clean: 46 tensors in 41468 bytes; checked: header, keys, names, fields, layout, alignment, values"
run info --strict "$model/model.safetensors" --json
code 0
out '{"n_bytes":41468,"n_tensors":46,"findings":[]}'

# the header as a whole
write '{}' ''
run info --strict "$file"
code 0
out "clean: 0 tensors in 16 bytes; checked: header, keys, names, fields, layout, alignment, values"
write ' {}' ''
finding leading-blanks 8 "1 blanks before the header's '{'"
write '\357\273\277{}   ' ''
finding byte-order-mark 8 "a byte order mark before the header"
write '{}    \n' ''
finding after-header 14 "1 bytes that are not all spaces between the header's '}' and the data"
write '{       ' ''
finding not-json 16 "no JSON object ends here"
write '{"a":[[[[[1]]]]]}       ' ''
finding too-deep 8 "JSON is nested deeper than 4 levels"
printf '\377\377\377\377\377\377\377\377{}' >"$file"
finding header-length 0 "header length 18446744073709551615 is more than 2"
printf 'PK\003\004    {}' >"$file"
finding header-length 0 "header length 2314885530346802000 is more than 2; a pickle of PyTorch? tools/bin2safetensors.py converts it"

# keys and names
write "{$(one t 0),$(one '\\u0074' 4)}" 'abcdefgh'
run info --strict "$file"
code 1
out_like "^duplicate-key        byte 62          't' is there again, after the one at byte 9$"
out_like "^not-at-0             byte [0-9]*  *tensor 't': is the first but does not begin at 0: it begins at 4$"
write "{$(one '' 0)}" 'abcd'
finding empty-name 9 "tensor '': the name is empty"
write "{$(one 'a\\u0000' 0)}" 'abcd'
finding nul-in-name 9 "tensor 'a\\x00': \\u0000 in the name, which ends it for readers in C"
write "{$(one 'a\\u001b[2J' 0)}" 'abcd'
finding control-character 9 "tensor 'a\\x1b[2J': U+001B in the name"
write "{$(one 'a\342\200\256b' 0)}" 'abcd'
finding invisible-character 9 "tensor 'a\\xe2\\x80\\xaeb': U+202E in the name, which is not seen or turns the writing"
write "{$(one '\303\251' 0),$(one 'e\314\201' 4)}" 'abcdefgh'
finding equal-names 63 "tensor '$(printf 'e\314\201')': has other bytes than the name at byte 9, but is equal to it once normalised (NFC)"

# fields
write '{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0}}    ' 'abcd'
finding unknown-field 61 "tensor 't': unknown field 'x'"
write '{"t":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}      ' 'abcd'
finding duplicate-key 40 "tensor 't': 'shape' is there again, after the one at byte 28"
write '{"__metadata__":{"a":1}}' ''
finding metadata 9 "the value of 'a' in __metadata__ is not a string"

# layout, alignment, values
write "{$(one a 0),$(one b 8)}" 'abcd....efgh'
finding hole 124 "tensor 'b': leaves a hole: it begins at 8, the tensors before it end at 4"
write "{$(one a 0),$(one b 0)}" 'abcd'
finding overlap 120 "tensor 'b': overlaps the tensors before it: it begins at 0, they end at 4"
write "{$(one a 0)}" 'abcdPK\003\004'
finding trailing-bytes 68 "8 bytes of data, but its tensors need 4"
write "{$(one a 0)}" 'abcd'
printf ' ' >>"$folder/header"
write_as_it_is 'abcd'
finding unaligned-data 65 "the data begins at byte 65, which is not a multiple of 8"
write "{$(one a 0),$(one b 4)}" '\000\000\300\177\000\000\200\377'
run info --strict "$file"
code 1
out "not-finite           byte 120         tensor 'a': 1 NaN and 0 infinite values, the first at element 0
not-finite           byte 124         tensor 'b': 0 NaN and 1 infinite values, the first at element 0
2 findings"
run info --strict --json "$file"
code 1
out '{"n_bytes":128,"n_tensors":2,"findings":[{"rule":"not-finite","offset":120,"tensor":"a","text":"1 NaN and 0 infinite values, the first at element 0"},{"rule":"not-finite","offset":124,"tensor":"b","text":"0 NaN and 1 infinite values, the first at element 0"}]}'

# what cannot be audited
run info --strict "$folder/absent.safetensors"
code 1
no_out
err "qkv: $folder/absent.safetensors: cannot open: No such file or directory"
printf '\000\000\000\002\000\000\000\000{}' >"$file" # 32 MiB of header
truncate -s 40M "$file"
run info --strict "$file"
code 1
no_out
err "qkv: $file: header length 33554432, the limit is 16777216 (QKV_MAX_TENSORS raises it)"
usage info "--strict needs a .safetensors file" info --strict
usage info "--strict needs a .safetensors file, not 'data/q.npy'" info --strict data/q.npy
usage info "--strict looks for NaN and infinity without --check-finite" info --strict --check-finite "$file"
finish
