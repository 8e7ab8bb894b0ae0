# Makes "build/deep/a copy of the source" and its release build, without tests; what others see of the project.
copy="build/deep/a copy of the source"
rm -rf "$copy"
mkdir -p "$copy"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$copy"
export CCACHE_DISABLE=1
(cd "$copy" && cmake --preset release -DQKV_TESTS=OFF && cmake --build --preset release)
