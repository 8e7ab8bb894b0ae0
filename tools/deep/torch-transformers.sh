# cost: 4.5
# qkv.transformers and qkv.inspect beside eager attention of transformers.
. tools/deep/lib.sh
. tools/deep/torch_tests.sh
torch_tests torch-transformers test_transformers test_inspect
echo "$n_cases cases"
