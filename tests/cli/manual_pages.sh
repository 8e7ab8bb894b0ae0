# Every manual page is made without a warning and read without one: manual_pages.sh SCDOC FOLDER-OF-PAGES FOLDER
# man and mandoc are asked where they are. mandoc's remarks about empty paragraphs are about how scdoc writes, not about pages.
set -u
scdoc=$1
man=$2
folder=$3
rm -rf "$folder"
mkdir -p "$folder"
failures=0
n=0
export LANG=C.UTF-8 MANWIDTH=80
for page in "$man"/*.scd; do
    name=$(basename "$page" .scd)
    n=$((n + 1))
    {
        awk '/^```/ { block = !block } !block && /^\t*\\?[.]/ { print FNR ": begins with a dot: scdoc loses it" }' "$page"
        "$scdoc" <"$page" >"$folder/$name" || echo "scdoc fails"
        [ -s "$folder/$name" ] || echo "nothing was made"
        if command -v man >/dev/null; then
            man --warnings -l "$folder/$name" >"$folder/$name.txt" || echo "man fails"
            grep -q '^NAME' "$folder/$name.txt" || echo "no NAME"
        fi
        if command -v mandoc >/dev/null; then
            mandoc -T lint -W warning "$folder/$name" | grep -v 'skipping paragraph macro'
        fi
    } >"$folder/said" 2>&1
    [ -s "$folder/said" ] || continue
    sed "s/^/$name: /" "$folder/said"
    failures=$((failures + 1))
done
echo "$n pages, $failures failures"
[ "$n" -gt 0 ] && [ "$failures" -eq 0 ]
