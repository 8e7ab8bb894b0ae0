# copy.sh FOLDER: copies the source to FOLDER and makes its release build, without tests and without a compiler's cache: what
# others get. A copy that is not older than the source stays.
stamp=$1/build/copied
if [ -e "$stamp" ] && [ -z "$(find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o -newer "$stamp" -print | head -n 1)" ]; then
    exit 0
fi
rm -rf "$1"
mkdir -p "$1/build"
touch "$1/build/begun"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$1"
export CCACHE_DISABLE=1
cd "$1"
cmake --preset release -DQKV_TESTS=OFF
cmake --build --preset release
mv build/begun build/copied # as old as what was copied
