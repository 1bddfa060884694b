# SPDX-License-Identifier: Apache-2.0
# Sourced by every script of tests/torch: shell.sh, and a Python that has PyTorch as $python.
source "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

# needs MODULE PACKAGE
needs() {
  "$python" -c "import $1" 2> /dev/null || skip "$python has no $1 (package $2; scripts/install-packages --torch)"
}

python=$(type -P python3 || true)
for candidate in "$python" /usr/bin/python3; do
  "$candidate" -c 'import torch' 2> /dev/null && python=$candidate && break
done
needs torch python3-torch
export PYTHONPATH=$source_dir/python PYTHONDONTWRITEBYTECODE=1
