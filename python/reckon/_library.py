# SPDX-License-Identifier: Apache-2.0
"""libreckon.so by ctypes: the declarations of include/reckon/reckon.h and nothing else."""
import ctypes
import os
import pathlib
import shutil

OK, PENDING, INPUT, UNAVAILABLE, FAILED, PEER, INTERNAL = 0, 1, 2, 3, 4, 5, 70
DTYPES = ("float32", "float16", "bfloat16")  # by number, as PyTorch calls them


class ReckonError(RuntimeError):
    """`status` says what it was: 2 an argument, the environment or a file is wrong; 3 not available here; 4 something
    here failed; 5 another rank ended or is not heard of, the text names it; 70 a bug of reckon."""

    def __init__(self, message, status=INPUT):
        super().__init__(message)
        self.status = status


ReckonError.__module__ = "reckon"  # as which people catch it


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("plan", ctypes.c_char_p), ("workload", ctypes.c_char_p),
                ("transport", ctypes.c_char_p), ("gradient", ctypes.c_void_p), ("gradient_bytes", ctypes.c_uint64),
                ("average", ctypes.c_int), ("pin_lanes", ctypes.c_int), ("join_seconds", ctypes.c_double),
                ("peer_seconds", ctypes.c_double), ("by_parts", ctypes.c_int), ("checksums", ctypes.c_int)]


class Description(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("rank", ctypes.c_int), ("size", ctypes.c_int),
                ("workers", ctypes.c_int), ("worker", ctypes.c_int), ("tensors", ctypes.c_size_t),
                ("gradient_bytes", ctypes.c_uint64), ("gradient", ctypes.c_void_p)]


class TensorPlace(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("offset_bytes", ctypes.c_uint64),
                ("elements", ctypes.c_uint64), ("dtype", ctypes.c_int)]


SESSION = ctypes.c_void_p
FUNCTIONS = {
    "reckon_version": (ctypes.c_char_p, []),
    "reckon_error": (ctypes.c_char_p, []),
    "reckon_join_within": (ctypes.c_int, [ctypes.POINTER(Options), ctypes.POINTER(SESSION), ctypes.c_double]),
    "reckon_describe": (ctypes.c_int, [SESSION, ctypes.POINTER(Description)]),
    "reckon_tensor": (ctypes.c_int, [SESSION, ctypes.c_size_t, ctypes.POINTER(TensorPlace)]),
    "reckon_begin": (ctypes.c_int, [SESSION]),
    "reckon_ready": (ctypes.c_int, [SESSION, ctypes.c_size_t, ctypes.c_size_t]),
    "reckon_wait_for": (ctypes.c_int, [SESSION, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_double]),
    "reckon_use_gpu": (ctypes.c_int, [SESSION, ctypes.c_int]),
    "reckon_ready_on_stream": (ctypes.c_int, [SESSION, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]),
    "reckon_follow_on_stream": (ctypes.c_int, [SESSION, ctypes.c_void_p]),
    "reckon_wait_on_stream": (ctypes.c_int, [SESSION, ctypes.c_void_p]),
    "reckon_wait": (ctypes.c_int, [SESSION, ctypes.c_double]),
    "reckon_serve": (ctypes.c_int, [SESSION, ctypes.c_double]),
    "reckon_report": (ctypes.c_int, [SESSION, ctypes.POINTER(ctypes.c_char_p)]),
    "reckon_leave_within": (ctypes.c_int, [ctypes.POINTER(SESSION), ctypes.c_double]),
    "reckon_abandon": (None, [SESSION, ctypes.c_char_p]),
}


def beside(program):
    """The libraries of the build or the installation that this file `reckon` is of."""
    folder = pathlib.Path(program).resolve().parent
    return [*folder.parent.glob("libreckon/libreckon.so.0"), *of_prefix(folder.parent)]


def of_prefix(prefix):
    return [path for folder in ("lib*", "lib/*") for path in sorted(prefix.glob(f"{folder}/libreckon.so.0"))]


def places():
    """Where the library may be: $RECKON_LIBRARY alone, else that of this installation or source tree, of the `reckon` on PATH,
    the system's."""
    given = os.environ.get("RECKON_LIBRARY")
    if given:
        return [given]
    here = pathlib.Path(__file__).resolve()
    if here.parts[-3] in ("dist-packages", "site-packages"):  # PREFIX/lib/python3.11/dist-packages/reckon
        found = of_prefix(here.parents[4])
    else:
        found = sorted(here.parents[2].glob("build/*/apps/libreckon/libreckon.so.0"),
                       key=lambda path: path.stat().st_mtime, reverse=True)
    program = shutil.which("reckon")
    found += beside(program) if program else []
    return [str(path) for path in found] + ["libreckon.so.0"]


def load():
    errors = []
    for place in places():
        try:
            library = ctypes.CDLL(place)
        except OSError as error:
            errors.append(str(error))
            continue
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library
    raise ReckonError(f"cannot load libreckon ({'; '.join(errors)}); install reckon or put it on PATH, or say where "
                      "the library is by RECKON_LIBRARY=/path/to/libreckon.so", UNAVAILABLE)
