# cost: 4.5
# qkv.torch beside torch itself: operators, gradients, threads, processes, what is put in place of torch's own.
. tools/deep/lib.sh
. tools/deep/torch_tests.sh
torch_tests torch-operators test_torch test_torch_distances test_torch_tensors test_torch_derivatives test_torch_replaced test_torch_threads test_torch_distributed
echo "$n_cases cases"
