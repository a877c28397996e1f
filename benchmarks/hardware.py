"""Description of the machine that a GPU benchmark runs on."""

import importlib.metadata
import shutil
import subprocess
import sys

import torch

PACKAGES = ("torch", "triton", "adasplash", "entmax")


def hardware() -> dict:
    """Return the names of GPU and driver, and the versions of CUDA, Python and the packages."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    driver = []
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip().splitlines()
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver[0] if driver else "unknown",
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
        "versions": versions,
    }
