# cost: 12
# The packages of Debian and the wheel of `./dev release` in bare roots of Debian: installed, run without a network, removed. Needs
# root, a mirror of Debian, debhelper, dh-python and debootstrap. QKV_SUITES: the suites that packages are installed in; those of
# another suite than this system's are built there.
. tools/deep/lib.sh
. tools/deep/bare_root.sh
folder=$PWD/build/deep/release-debian
rm -rf "$folder"
mkdir -p "$folder"
rm -rf "$dist"
./dev release debian wheel bill sums
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
case_ok "sums"

# packages_of SUITE: into the root
packages_of() {
    if [ "$(this_suite)" = "$1" ]; then
        cp "$dist"/*.deb "$root/"
    else
        mkdir "$root/build"
        cp "$dist"/qkv_*.dsc "$dist"/qkv_*.debian.tar.xz "$root/build/"
        cp "$dist"/qkv-[0-9]*.tar.gz "$root/build/$(sed -n 's/.* \(qkv_[^ ]*\.orig\.tar\.gz\)$/\1/p' "$dist"/qkv_*.dsc | head -n 1)"
        in_root 'cd /build
            apt-get install -qq -y --no-install-recommends build-essential fakeroot
            dpkg-source -x qkv_*.dsc source
            cd source
            apt-get build-dep -qq -y --no-install-recommends ./
            dpkg-buildpackage -us -uc -b
            mv ../*.deb /'
    fi
    rm -f "$root"/*-dbgsym_*.deb
}
# The command alone; all packages and what autopkgtest would run; an upgrade to themselves; nothing is left of them.
packages() {
    in_root 'apt-get install -qq -y --no-install-recommends ./qkv_*.deb ./libqkv[!-]*.deb'
    alone chroot "$root" qkv look "$sentence"
    in_root 'apt-get install -qq -y --no-install-recommends ./*.deb gcc libc6-dev pkg-config'
    mkdir -p "$root/source"
    cp -R examples debian "$root/source/"
    for test in examples tool python; do
        mkdir -p "$root/tmp/$test"
        alone chroot "$root" sh -euc "cd /source && AUTOPKGTEST_TMP=/tmp/$test sh debian/tests/$test"
    done
    in_root 'apt-get install -qq -y --reinstall ./*.deb && apt-get purge -qq -y "*qkv*"'
    left=$(find "$root/usr" "$root/etc" "$root/var/lib" -name '*qkv*' ! -path '*/apt/*')
    [ -z "$left" ] || { echo "left behind: $left" && return 1; }
}
# In an environment of its own, the program of README; NumPy is fetched here, where certificates are.
wheel() {
    in_root 'apt-get install -qq -y --no-install-recommends python3-venv && python3 -m venv /environment'
    version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    python/environment/bin/python -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "$version" \
        -d "$root/wheels" "$dist"/qkv-*"$(uname -m)".whl
    sed -n '/^```python$/,/^```$/{ /^```/!p }' README.md >"$root/readme.py"
    [ -s "$root/readme.py" ]
    cp debian/tests/python "$root/test_python"
    alone chroot "$root" sh -euc '/environment/bin/pip install -q --disable-pip-version-check --no-index --find-links /wheels qkv
        /environment/bin/python /readme.py
        PATH=/environment/bin:$PATH AUTOPKGTEST_TMP=/tmp sh /test_python'
}
for suite in ${QKV_SUITES:-$(this_suite)}; do
    timed "a bare root of $suite" make_root "$suite" "$folder/$suite"
    packages_of "$suite"
    timed "packages in $suite" packages
    [ "$suite" != "$(this_suite)" ] || timed "wheel in $suite" wheel
    rm -rf "$root"
done

echo "$n_cases cases"
