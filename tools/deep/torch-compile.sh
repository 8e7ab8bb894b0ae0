# cost: 4.5
# qkv.torch under torch.compile: no graph breaks, the bits of the call that is not compiled.
. tools/deep/lib.sh
. tools/deep/torch_tests.sh
torch_tests torch-compile test_torch_compile
echo "$n_cases cases"
