#!/bin/sh
# Runs bench/peers.py with its arguments, or bench/models.py after the word models, or without words both, in an environment of its own under build/, made at the first time.
set -eu
cd "$(dirname "$0")/.."
python=build/peers/bin/python
peers="numpy torch onnx onnxruntime openvino transformers"
[ -x $python ] || python3 -m venv build/peers
if ! $python -c "import $(echo $peers | tr ' ' ,)" 2>/dev/null; then
    echo "bench: installing $peers into build/peers" >&2
    $python -m pip install -q --disable-pip-version-check $peers >&2
fi
case "${1:-}" in
models) shift && exec $python bench/models.py --library build/release/libmodels.so "$@" ;;
"") $python bench/models.py --library build/release/libmodels.so ;;
esac
exec $python bench/peers.py --library build/release/libpeers.so "$@"
