# cost: 4
# The cell of a notebook in a browser, what README says of Python, the four notebooks.
. tools/deep/lib.sh
. tools/deep/torch_tests.sh
torch_tests torch-notebooks test_cell test_readme test_notebooks
echo "$n_cases cases"
