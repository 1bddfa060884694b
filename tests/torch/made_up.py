# SPDX-License-Identifier: Apache-2.0
"""The library of made_up_gpu.cpp, whose GPU's memory is the processor's."""
import ctypes
import os

import reckon._gpu


def use():
    """From now on reckon's calls of torch.cuda that need no stream of PyTorch's are made up. Returns the address of the program's
    stream, and what waits for it: what PyTorch does on the processor waits for no stream."""
    library = ctypes.CDLL(os.environ["RECKON_LIBRARY"])
    library.made_up_stream.restype = ctypes.c_void_p
    reckon._gpu.is_capturing = lambda: False

    def synchronize():
        assert library.made_up_synchronize() == 0

    return library.made_up_stream(), synchronize
