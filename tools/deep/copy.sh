# copy.sh FOLDER: copies the source to FOLDER and makes its release build, without tests and without a compiler's cache: what
# others get.
rm -rf "$1"
mkdir -p "$1"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$1"
export CCACHE_DISABLE=1
cd "$1"
cmake --preset release -DQKV_TESTS=OFF
cmake --build --preset release
