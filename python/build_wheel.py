# SPDX-License-Identifier: Apache-2.0
"""What `pip install ./python` calls (PEP 517): a wheel of the package reckon. Setuptools would have to be loaded first."""
import pathlib
import re
import zipfile

ROOT = pathlib.Path(__file__).parent
SOURCES = sorted((ROOT / "reckon").glob("*.py"))
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "reckon/__init__.py").read_text())[1]
INFO = f"reckon-{VERSION}.dist-info"


def write(wheel_directory, files):
    """A wheel of these texts by name."""
    wheel = f"reckon-{VERSION}-py3-none-any.whl"
    files[f"{INFO}/METADATA"] = f"Metadata-Version: 2.1\nName: reckon\nVersion: {VERSION}\nRequires-Python: >=3.9\n"
    files[f"{INFO}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{INFO}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{INFO}/RECORD"])
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory, {f"reckon/{path.name}": path.read_text() for path in SOURCES})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory, {"reckon.pth": f"{ROOT.resolve()}\n"})
